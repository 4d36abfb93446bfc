"""Five toy tasks that a small Transformer can solve exactly. Each needs a different relation between positions.

copy      abca -> abca        target position t attends to source position t
reverse   abca -> acba        t attends to length - 1 - t
sort      abca -> aabc        count each letter, and find the next one
addition  57+8 -> 65          aligned digits, and carries that run from right to left
recall    a3k7c1k -> 7        find the pair of the letter that is asked at the end, wherever it is

A hash of a source's ids decides whether it is held out, never chance. The same sequence is always on the same side of
the split, so training cannot have seen a test example.
"""

import re
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_choice, check_integer
from minitransformer.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS

HELD_OUT_SHARE = 0.1


class Batch(NamedTuple):
    """Pairs of sequences, padded at the end. The decoder reads target_in and predicts target_out, one step ahead."""

    source: np.ndarray  # (B, S), ends with eos
    target_in: np.ndarray  # (B, T), begins with bos
    target_out: np.ndarray  # (B, T), ends with eos

    @property
    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """The arguments of the model's forward pass."""
        return self.source, self.target_in

    @property
    def targets(self) -> np.ndarray:
        """The ids to compare the logits with. Padding does not count in the loss."""
        return self.target_out


class ToyTask:
    """A source of training and held-out batches. A subclass defines how sources are drawn and what the answer is."""

    symbols = ""
    separator = ""  # between the tokens of a text
    max_len = 12  # of a source
    growth = 1  # tokens of the longest answer for each of a source
    min_len_held_out = 6  # of a held-out source: there are too few shorter ones for a fair test

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens in the order of their ids."""
        return (*SPECIAL_TOKENS, *self.symbols)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text: its characters."""
        return list(text)

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises ValueError for an unknown symbol."""
        known = self.vocabulary[len(SPECIAL_TOKENS) :]
        tokens = self.tokens(text)
        for token in tokens:
            if token not in known:
                raise ValueError(f"unknown symbol {token!r}: this task has the symbols {self.symbols!r}")
        return np.array([len(SPECIAL_TOKENS) + known.index(token) for token in tokens], dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a row of ids, up to the first eos, without padding and bos."""
        text = []
        for i in ids:
            if i == EOS:
                break
            if i not in (PAD, BOS):
                text.append(self.vocabulary[i])
        return self.separator.join(text)

    def show(self, prompt: str, answer: str) -> list[str]:
        """The lines that show a model's answer to a prompt."""
        return [answer]

    def batch(self, rng: np.random.Generator, size: int, held_out: bool = False, min_len: int = 1) -> Batch:
        """`size` pairs from one side of the split, with sources of `min_len` to `max_len` symbols."""
        check_integer("size", size, least=1)
        if not 1 <= min_len <= self.max_len:
            raise ValueError(f"min_len must be from 1 to {self.max_len}, got {min_len}")
        rows, count = [], 0
        while count < size:
            source = self.draw(rng, 2 * size, min_len)
            source = source[is_held_out(source) == held_out]
            rows.append(source)
            count += len(source)
        source = np.concatenate(rows)[:size]
        return make_batch(source, self.solve(source))

    def held_out_batch(self, rng: np.random.Generator, size: int) -> Batch:
        """`size` held-out pairs for a test."""
        return self.batch(rng, size, held_out=True, min_len=self.min_len_held_out)

    def draw(self, rng: np.random.Generator, count: int, min_len: int) -> np.ndarray:
        """`count` random sources as ids (count, max_len), padded at the end."""
        lengths = rng.integers(min_len, self.max_len + 1, size=count)
        ids = rng.integers(len(SPECIAL_TOKENS), len(self.vocabulary), size=(count, self.max_len))
        return np.where(np.arange(self.max_len) < lengths[:, None], ids, PAD)

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The right answer (B, T) to each source (B, S), padded at the end, without bos and eos."""
        raise NotImplementedError


class Copy(ToyTask):
    """Repeat the source."""

    symbols = string.ascii_lowercase

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The source itself."""
        return source


class Reverse(ToyTask):
    """Write the source backwards."""

    symbols = string.ascii_lowercase

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The source from its last symbol to its first, with the padding still at the end."""
        lengths = (source != PAD).sum(axis=1, keepdims=True)
        where = lengths - 1 - np.arange(source.shape[1])  # negative in the padding
        return np.where(where >= 0, np.take_along_axis(source, where % source.shape[1], axis=1), PAD)


class Sort(ToyTask):
    """Write the source's letters in alphabetical order."""

    symbols = string.ascii_lowercase

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The ids in ascending order, with the padding still at the end."""
        beyond = len(self.vocabulary)
        ordered = np.sort(np.where(source == PAD, beyond, source), axis=1)
        return np.where(ordered == beyond, PAD, ordered)


class Addition(ToyTask):
    """Add two decimal numbers of up to `max_digits` digits each, most significant digit first."""

    symbols = string.digits + "+"
    max_digits = 4
    max_len = 2 * max_digits + 1
    min_len_held_out = 6

    def draw(self, rng: np.random.Generator, count: int, min_len: int) -> np.ndarray:
        """`count` sums. The number of digits is drawn first, so that short numbers are not rare."""
        digits = rng.integers(1, self.max_digits + 1, size=(2, count))
        low = np.where(digits == 1, 0, 10 ** (digits - 1))
        numbers = rng.integers(low, 10**digits).T
        rows = [f"{a}+{b}" for a, b in numbers]
        return pad_rows([self.encode(row) for row in rows if len(row) >= min_len], self.max_len)

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The digits of each sum."""
        sums = (sum(map(int, self.decode(row).split("+"))) for row in source)
        return pad_rows([self.encode(str(total)) for total in sums], self.max_digits + 1)


class Recall(ToyTask):
    """Key-value recall: pairs of a letter and a digit, and then one of the letters again; the answer is its digit.

    The letters of a source are all different, in random order, and any of them may be asked; `pairs` is the largest
    number of pairs. A pair is one token, so it can be found by comparing it with what is asked (Graves et al. 2014,
    section 4.3; Arora et al. 2023, where key and value are two tokens). What counts is how much of the past a model can
    reach or keep: a window forgets what is far away, and a state of constant size has room for a few pairs only. Raises
    ValueError unless `pairs` is from 1 to the number of letters.
    """

    keys, values = string.ascii_lowercase, string.digits
    symbols = values + keys

    def __init__(self, pairs: int = 16) -> None:
        if not 1 <= check_integer("pairs", pairs) <= len(self.keys):
            raise ValueError(f"pairs must be from 1 to {len(self.keys)}, got {pairs}")
        self.max_len = pairs + 1
        self.min_len_held_out = min(4, self.max_len)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The digits, the letters, and all pairs of them."""
        return (*super().vocabulary, *(key + value for key in self.keys for value in self.values))

    def tokens(self, text: str) -> list[str]:
        """A letter and the digit after it are one token."""
        return re.findall(r"[a-z][0-9]|.", text, re.DOTALL)

    def draw(self, rng: np.random.Generator, count: int, min_len: int) -> np.ndarray:
        """`count` sources with every number of pairs equally often."""
        most = self.max_len - 1
        pairs = rng.integers(max(1, min_len - 1), most + 1, size=(count, 1))
        keys = rng.permuted(np.tile(np.arange(len(self.keys)), (count, 1)), axis=1)[:, :most]
        first_key = len(SPECIAL_TOKENS) + len(self.values)
        first_pair = first_key + len(self.keys)
        ids = first_pair + len(self.values) * keys + rng.integers(0, len(self.values), size=keys.shape)
        asked = first_key + np.take_along_axis(keys, rng.integers(0, pairs), axis=1)
        where = np.arange(self.max_len)
        return np.where(where < pairs, np.pad(ids, ((0, 0), (0, 1))), np.where(where == pairs, asked, PAD))

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The digit of the pair whose letter is the last token."""
        last = np.take_along_axis(source, (source != PAD).sum(axis=1, keepdims=True) - 1, axis=1)
        first_key = len(SPECIAL_TOKENS) + len(self.values)
        keys, values = np.divmod(source - first_key - len(self.keys), len(self.values))
        where = (keys == last - first_key).argmax(axis=1)[:, None]
        return len(SPECIAL_TOKENS) + np.take_along_axis(values, where, axis=1)


_TASKS: dict[str, type[ToyTask]] = {
    "copy": Copy,
    "reverse": Reverse,
    "sort": Sort,
    "addition": Addition,
    "recall": Recall,
}


def task_names() -> tuple[str, ...]:
    """The names that `get_task` accepts."""
    return tuple(_TASKS)


def get_task(name: str) -> ToyTask:
    """The toy task called `name`. Raises ValueError for an unknown name, with the list of known ones."""
    return _TASKS[check_choice("task", name, task_names())]()


def pad_rows(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Rows of ids of different lengths as one array (len(rows), length), with padding at the end."""
    padded = np.full((len(rows), length), PAD, dtype=np.int64)
    for padded_row, row in zip(padded, rows, strict=True):
        padded_row[: len(row)] = row
    return padded


def make_batch(source: np.ndarray, answer: np.ndarray) -> Batch:
    """A batch from sources (B, S) and answers (B, T), both padded at the end.

    Each source ends with eos, so that the decoder can attend to its end. Teacher forcing: the decoder reads the answer
    shifted right by one, so each token is predicted from those before it (paper section 3.1).
    """
    bos = np.full((len(answer), 1), BOS, dtype=answer.dtype)
    target_out = append_eos(answer)
    target_in = np.concatenate([bos, answer], axis=1)[:, : target_out.shape[1]]
    return Batch(append_eos(source), target_in, target_out)


def append_eos(ids: np.ndarray) -> np.ndarray:
    """ids (B, T) with eos after each row and without columns that are all padding: (B, longest + 1)."""
    lengths = (ids != PAD).sum(axis=1)
    longer = np.full((len(ids), lengths.max() + 1), PAD, dtype=ids.dtype)
    longer[:, :-1] = ids[:, : lengths.max()]
    longer[np.arange(len(ids)), lengths] = EOS
    return longer


def is_held_out(source: np.ndarray) -> np.ndarray:
    """Which sources (B, S) are held out for the test: (B,) boolean.

    A hash of the ids (FNV-1a, then the finalizer of splitmix64) is compared with the share to hold out. It skips eos
    and padding, so the same symbols always get the same result.
    """
    state = np.full(len(source), 0xCBF29CE484222325, dtype=np.uint64)
    for column in source.T.astype(np.uint64):
        mixed = (state ^ column) * np.uint64(0x100000001B3)  # wraps around modulo 2^64, as it should
        state = np.where((column == PAD) | (column == EOS), state, mixed)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state < np.uint64(int(HELD_OUT_SHARE * 2**64))
