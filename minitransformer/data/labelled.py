"""Sentences with labels, as batches of ids for a classifier; and scikit-learn's digits, as batches of pixels."""

import ast
import hashlib
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from minitransformer.config import OWN_IDS, ModelConfig
from minitransformer.data.pairs import Pair, place, read_pairs, tidy
from minitransformer.data.text import TextBatch
from minitransformer.tokenizers import Tokenizer, WordPieceTokenizer

HELD_OUT_SHARE = 0.2  # of the sentences with each label
EXPECTED = "a line must be a sentence, a tab and its label, such as: Where is my parcel?<TAB>delivery"
DIGITS, SIDE, LEVELS = 450, 8, 17  # images that are held out; their pixels on a side, and the gray levels of these
PACKAGES = ("asyncio", "email", "http", "importlib", "logging", "turtle", "typing", "unittest", "urllib", "xml")


def load_labelled(path: str | os.PathLike | None = None) -> tuple[list[Pair], list[Pair]]:
    """(sentence, label) of a file (see `read_pairs`) or of `docstrings` -> those to train on, and those held out.

    A hash of each sentence decides which fifth of those with the same label is held out. Sentences with two labels are
    left out. Raises ValueError for fewer than two labels, and for a label that only one sentence has.
    """
    labels: dict[str, set[str]] = {}
    for sentence, label in docstrings() if path is None else read_pairs(path, EXPECTED):
        labels.setdefault(sentence, set()).add(label)
    pairs = sorted(((sentence, own.pop()) for sentence, own in labels.items() if len(own) == 1), key=place)
    counts, seen = Counter(label for _, label in pairs), Counter[str]()
    few = ", ".join(f"{label!r} ({count})" for label, count in counts.most_common()[-3:])
    if len(counts) < 2 or min(counts.values()) < 2:
        raise ValueError(f"{path}: two labels are needed, and two sentences of each, got {few or 'none'}; {EXPECTED}")
    parts: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        parts[seen[pair[1]] < max(1, HELD_OUT_SHARE * counts[pair[1]])].append(pair)
        seen[pair[1]] += 1
    return parts


def docstrings() -> Iterator[Pair]:
    """The sentences in the docstrings of packages that every Python has, each with its package as the label."""
    for package in PACKAGES:
        path = Path(str(importlib.util.find_spec(package).origin))  # type: ignore[union-attr]
        for file in sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]:
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z])", tidy(paragraph)):
                            if ">>>" not in sentence and len(sentence.split()) >= 5:
                                yield sentence, package


def encode_sentences(
    tokenizer: Tokenizer, sentences: Sequence[str], length: int, config: ModelConfig = OWN_IDS
) -> np.ndarray:
    """Ids (B, T), padded: the start, whose output a pooled head reads, and the sentence, `length` ids at most.

    BERT's own tokenizer says itself what stands around a sentence, and what pads it.
    """
    start, filler = [] if config.start is None else [config.start], config.filler
    if isinstance(tokenizer, WordPieceTokenizer):
        filler = tokenizer.padding
        rows = [tokenizer.encode_pair(sentence, length=length).ids.tolist() for sentence in sentences]
    else:
        rows = [[*start, *tokenizer.encode(sentence)][:length] for sentence in sentences]
    width = max(map(len, rows))
    return np.array([row + [filler] * (width - len(row)) for row in rows])


class LabelledTask:
    """Batches of labelled sentences, padded, with bos first; the targets number the labels from 1, as 0 is padding.

    Of a longer sentence only the first `length` tokens are read, bos included. `config`, that of the model, says which
    ids are bos and padding.
    """

    def __init__(
        self,
        train: list[Pair],
        held_out: list[Pair],
        tokenizer: Tokenizer,
        length: int,
        config: ModelConfig = OWN_IDS,
    ) -> None:
        self.tokenizer, pairs = tokenizer, train + held_out
        self.labels = sorted({label for _, label in pairs})
        self.sha256 = hashlib.sha256("\n".join(map("\t".join, pairs)).encode()).hexdigest()
        ids = encode_sentences(tokenizer, [sentence for sentence, _ in pairs], length, config)
        targets = np.array([1 + self.labels.index(label) for _, label in pairs])
        count = len(train)
        self.about = f"({HELD_OUT_SHARE:.0%} of each of {len(self.labels)} labels); {tokenizer.vocab_size:,} tokens"
        self.train, self.held_out = TextBatch(ids[:count], targets[:count]), TextBatch(ids[count:], targets[count:])

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` of the training sentences."""
        rows = rng.integers(0, len(self.train.ids), size)
        return TextBatch(*(array[rows] for array in self.train))

    def held_out_batches(self, size: int) -> Iterator[TextBatch]:
        """The held-out sentences, at most `size` at a time."""
        for start in range(0, len(self.held_out.ids), size):
            yield TextBatch(*(array[start : start + size] for array in self.held_out))


class DigitsTask(LabelledTask):
    """Batches of handwritten digits, 1,797 images of 8 x 8, as pixels (B, 64), row by row, from 1 for white to 17.

    In training each image is moved by at most a pixel, up or down and left or right. `seed` draws those that are held
    out. Raises ValueError if scikit-learn, with which they come, is not installed.
    """

    about = "(drawn by --seed)"

    def __init__(self, seed: int) -> None:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            hint = "the digits come with scikit-learn, which is not installed: pip install -e '.[digits]'"
            raise ValueError(hint) from error
        images, digits = load_digits(return_X_y=True)
        order = np.random.default_rng([seed, 4]).permutation(len(images))
        pixels, targets = 1 + images[order].astype(int), 1 + digits[order]
        self.labels, self.sha256 = [*map(str, range(10))], hashlib.sha256(pixels.tobytes()).hexdigest()
        self.train = TextBatch(pixels[DIGITS:], targets[DIGITS:])
        self.held_out = TextBatch(pixels[:DIGITS], targets[:DIGITS])

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` of the training images."""
        pixels, targets = super().batch(rng, size)
        padded = np.pad(pixels.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)), constant_values=1)
        rows, columns = rng.integers(0, 3, (2, size, 1)) + np.arange(SIDE)
        moved = padded[np.arange(size)[:, None, None], rows[:, :, None], columns[:, None]]
        return TextBatch(moved.reshape(size, -1), targets)
