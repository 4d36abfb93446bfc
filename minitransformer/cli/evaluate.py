"""`minitransformer evaluate`: the perplexity of a language model on a text, or the scores of a translator."""

import argparse
import math
from typing import Any

from minitransformer.data.pairs import read_pairs
from minitransformer.data.translation import EncodedPairs
from minitransformer.evaluation import strided_windows, windowed_loss
from minitransformer.models import Transformer
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.recipes.saved import check_known, open_model
from minitransformer.recipes.translation import score_lines, score_pairs
from minitransformer.system.files import read_text
from minitransformer.system.progress import tqdm
from minitransformer.system.terminal import wrap
from minitransformer.tokenizers import Tokenizer

DESCRIPTION = """\
Print how well a language model predicts a text: its perplexity, the exponential of the mean loss of a token. With a
perplexity of 20 it is as unsure of the next token as if it chose among 20 that are equally likely.

  minitransformer evaluate path/to/gpt2 --text wiki.txt        a GPT-2 saved by Hugging Face
  minitransformer evaluate runs/shakespeare --text sonnets.txt
  minitransformer evaluate path/to/gpt2 --text wiki.txt --stride 1024      fast, and a higher perplexity
  minitransformer evaluate runs/translation --text my.tsv      in each line a sentence, a tab, its translation

A model reads only so many tokens at a time, and predicts a token better the more of the text before it has been read.
So the windows overlap: each begins --stride tokens after the one before, and only the tokens that are new in it count.
A smaller stride gives every token more to read before it, and takes longer. Every token that is predicted counts once.

Models with different tokenizers cannot be compared by their perplexity, because the tokens of one may be ten times as
long as those of another. Bits per character can be: the bits that the model needs for the whole text, by its length.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run, a checkpoint, a model file or a folder of a GPT-2")
    parser.add_argument("--text", metavar="FILE", required=True, help="the text, or pairs of sentences, in UTF-8")
    parser.add_argument("--swap", action="store_true", help="for pairs: the second sentence is the one to translate")
    parser.add_argument(
        "--stride", type=int, metavar="N", help="tokens from one window to the next (default: half of a window)"
    )


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Load the model, whose kind decides what it is scored on."""
    run = arguments.run
    model, tokenizer = open_model(run, "text")
    kinds = (GPT, Transformer, Seq2Seq)
    if not isinstance(model, kinds) or tokenizer is None:
        raise ValueError(f"{run} is a {type(model).__name__}: evaluate takes GPTs and translators with a tokenizer")
    if not isinstance(model, GPT):
        if arguments.stride is not None:
            raise ValueError(f"--stride is for language models, and {run} translates")
        return 0, evaluate_pairs(model, tokenizer, arguments)
    if arguments.swap:
        raise ValueError(f"--swap is for pairs of sentences, and {run} is a language model")
    return 0, evaluate_text(model, tokenizer, arguments)


def evaluate_pairs(model: Any, tokenizer: Tokenizer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Translate a file of pairs, and print how good the translations are."""
    pairs = [pair[::-1] if arguments.swap else pair for pair in read_pairs(arguments.text)]
    encoded = EncodedPairs(pairs, tokenizer, model.config.max_len)
    if not len(encoded):
        raise ValueError(f"{arguments.text} has no pair of at most {model.config.max_len} tokens on both sides")
    longer = f" (without {encoded.left_out:,} that are too long)" if encoded.left_out else ""
    numbers, _ = score_pairs(model, tokenizer, encoded)
    print(*score_lines(numbers, f"{len(encoded):,} pairs{longer}"), sep="\n")
    return {"pairs": len(encoded), **numbers}


def evaluate_text(model: GPT, tokenizer: Tokenizer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Compute the loss window by window, and print what it means."""
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
    lines = {
        "text": f"{len(text):,} characters, {len(ids):,} tokens",
        "windows": f"{len(windows):,}, of at most {model.config.max_len:,} tokens, {stride:,} apart",
        "perplexity": f"{perplexity:.6g}, from a loss of {nats:.4f} nats per token",
        "bits per character": f"{bits:.4f}",
    }
    print(*(wrap(line, f"{name:<20} ", " " * 21) for name, line in lines.items()), sep="\n")
    sizes = {"characters": len(text), "tokens": len(ids), "windows": len(windows), "nats": nats}
    return {**sizes, "perplexity": perplexity, "bits_per_character": bits}
