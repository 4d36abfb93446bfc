"""The loss on a text that is longer than a model reads: in overlapping windows, of which only new tokens count.

The loss is the mean over all tokens that are predicted, each once. The example in Hugging Face's documentation,
"Perplexity of fixed-length models", has the same windows, but weighs the mean of each with one token less than it
scores in all windows but the first, so it prints another number.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_integer
from minitransformer.functional import cross_entropy
from minitransformer.layers.since_2017.blockwise import most_logits
from minitransformer.models.reading import read
from minitransformer.models.since_2017.gpt import GPT


class Window(NamedTuple):
    """Tokens `start` to `end` of a text; those from `new` on were in no earlier window."""

    start: int
    new: int
    end: int


def strided_windows(length: int, max_length: int, stride: int) -> list[Window]:
    """Windows of `max_length` tokens, a `stride` apart, over a text of `length` tokens; the last one may be shorter.

    Raises ValueError for a text of fewer than 2 tokens, and unless 1 <= stride <= max_length.
    """
    if length < 2:
        raise ValueError(f"the text must have at least 2 tokens, got {length}: nothing predicts the first one")
    if not 1 <= check_integer("stride", stride) <= check_integer("max_length", max_length):
        raise ValueError(f"stride must be from 1 to the length of a window, {max_length}, got {stride}")
    last = max(0, -(-(length - max_length) // stride))  # the number of the first window that reaches the end
    ends = [0, *(min(i * stride + max_length, length) for i in range(last + 1))]
    return [Window(i * stride, ends[i], ends[i + 1]) for i in range(last + 1)]


def windowed_loss(model: GPT, ids: np.ndarray, windows: Iterable[Window]) -> float:
    """Mean cross-entropy in nats of a text's ids (T,) in `windows`; its exponential is the perplexity.

    No caches are kept, and logits are made for new tokens alone, a block at a time. Every id counts.
    Raises IndexError or ValueError for ids or windows that the model cannot read, and for a loss that is not finite.
    """
    total, predicted = 0.0, 0
    for start, new, end in windows:
        count = end - max(new, start + 1)  # nothing predicts a window's first token
        total += _loss(model, ids[start:end], count) if count else 0.0
        predicted += count
    if not math.isfinite(total):
        raise ValueError(
            f"the model computes NaN or infinity: its weights are too large for {model.output.E.data.dtype}"
        )
    return total / predicted


def _loss(model, ids, count):
    """The sum of the losses of the last `count` of ids (T,)."""
    total, size = 0.0, max(1, most_logits() // model.config.vocab_size)
    with np.errstate(over="ignore", invalid="ignore"):  # reported above
        y = read(model.features, ids[None])[0, -count - 1 : -1]
        for rows in (slice(first, first + size) for first in range(0, count, size)):
            targets = ids[-count:][rows]
            loss, _ = cross_entropy(model.output(y[rows]), to_device(targets), pad=None, overwrite=True)
            total += float(loss) * len(targets)
    return total
