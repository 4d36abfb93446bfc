"""`minitransformer evaluate`: the perplexity of a language model on a text."""

import argparse
import math
from typing import Any

from minitransformer.evaluation import strided_windows, windowed_loss
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.recipes.saved import check_known, open_model
from minitransformer.system.files import read_text
from minitransformer.system.progress import tqdm

DESCRIPTION = """\
Print how well a language model predicts a text: its perplexity, the exponential of the mean loss of a token. With a
perplexity of 20 it is as unsure of the next token as if it chose among 20 that are equally likely.

  minitransformer evaluate path/to/gpt2 --text wiki.txt        a GPT-2 saved by Hugging Face
  minitransformer evaluate runs/shakespeare --text sonnets.txt
  minitransformer evaluate path/to/gpt2 --text wiki.txt --stride 1024      fast, and a higher perplexity

A model reads only so many tokens at a time, and predicts a token better the more of the text before it has been read.
So the windows overlap: each begins --stride tokens after the one before, and only the tokens that are new in it count.
A smaller stride gives every token more to read before it, and takes longer. Every token that is predicted counts once.

Models with different tokenizers cannot be compared by their perplexity, because the tokens of one may be ten times as
long as those of another. Bits per character can be: the bits that the model needs for the whole text, by its length.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run, a checkpoint, a model file or a folder of a GPT-2")
    parser.add_argument("--text", metavar="FILE", required=True, help="the text, in UTF-8")
    parser.add_argument(
        "--stride", type=int, metavar="N", help="tokens from one window to the next (default: half of a window)"
    )


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Compute the loss window by window, and print what it means."""
    run = arguments.run
    model, tokenizer = open_model(run, "text")
    if not isinstance(model, GPT) or tokenizer is None:
        raise ValueError(f"{run} is a {type(model).__name__}: evaluate takes GPTs that were saved with a tokenizer")
    stride = max(1, model.config.max_len // 2) if arguments.stride is None else arguments.stride
    text = read_text(arguments.text)
    if not text:
        raise ValueError(f"{arguments.text} is empty")
    check_known(tokenizer, text, "the text")
    ids = tokenizer.encode(text)
    windows = strided_windows(len(ids), model.config.max_len, stride)
    with tqdm(windows, unit="window", disable=None) as progress:
        nats = windowed_loss(model, ids, progress)
    bits = nats / math.log(2) * len(ids) / len(text)
    perplexity = math.exp(nats) if nats < 700 else math.inf  # beyond the largest number
    print(
        f"{'text':<20} {len(text):,} characters, {len(ids):,} tokens",
        f"{'windows':<20} {len(windows):,}, of at most {model.config.max_len:,} tokens, {stride:,} apart",
        f"{'perplexity':<20} {perplexity:.6g}, from a loss of {nats:.4f} nats per token",
        f"{'bits per character':<20} {bits:.4f}",
        sep="\n",
    )
    sizes = {"characters": len(text), "tokens": len(ids), "windows": len(windows), "nats": nats}
    return 0, {**sizes, "perplexity": perplexity, "bits_per_character": bits}
