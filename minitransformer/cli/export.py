"""`minitransformer export`: write a trained model as the files of Hugging Face, for other software."""

import argparse
from typing import Any

from minitransformer.interop import save_huggingface
from minitransformer.recipes.saved import open_model
from minitransformer.tokenizers import ByteLevelTokenizer, BytePairTokenizer, WordPieceTokenizer

DESCRIPTION = """\
Write a trained model to FOLDER as `transformers`, Hugging Face's library, reads it: config.json, model.safetensors and
the files of its tokenizer, unless its tokens are characters. Its logits there are those that it has here.

  minitransformer export runs/text my-model

and in Python, where it is installed:

  from transformers import pipeline
  print(pipeline("text-generation", "my-model")("The "))

Each of their families has the parts that it has, so not every model can be exported. Which options of `train` lead to
which family:

  train text                            Starcoder2: GPT-2 with rotary positions
  train text --positions learned        GPT-2
  train masked --positions learned      BERT
  train text --from FOLDER              the family of the model in FOLDER, such as Llama or Qwen3

The paper's own model, with sinusoids, is none of them. What stands in the way of another model is named. An earlier
export in FOLDER is replaced; a folder with anything else is left alone.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run, a checkpoint or a model file")
    parser.add_argument("folder", metavar="FOLDER", help="where the files go: a new or empty folder, or an old export")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Export, and say what was written."""
    model, tokenizer = open_model(arguments.run, "text")
    known = isinstance(tokenizer, BytePairTokenizer | ByteLevelTokenizer | WordPieceTokenizer)
    theirs = save_huggingface(model, arguments.folder, tokenizer if known else None)
    kind, name = theirs["model_type"], theirs["architectures"][0]
    print(f"{arguments.folder} is a {kind} ({name}) of {model.num_parameters():,} parameters")
    if not known:
        missing = f"a {type(tokenizer).__name__} has no counterpart there" if tokenizer else "the run has none"
        print(f"without a tokenizer: {missing}")
    return 0, {"folder": arguments.folder, "model_type": kind, "architecture": name, "tokenizer": known}
