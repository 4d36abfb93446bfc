"""Parts of a batch with sequences of about the same length (paper section 5.1), so that less of the work is padding.

The paper draws batches of about the same length. Here a batch is drawn as it is and then cut: each part is padded only
to its own longest sequence, and the gradients of the parts add up to that of the batch. So the samples, the loss and
the gradient are those of the whole batch, except for rounding.
"""

from typing import Any

import numpy as np

from minitransformer.vocabulary import PAD

LEAST_SAVED = 128  # positions: what every part costs besides its positions, measured with the tiny model


def cut_by_length(batch: Any) -> list[Any]:
    """The batch in parts, from the shortest sequences to the longest, without the columns that are all padding.

    `batch` is a NamedTuple of arrays with the batch as first axis, the sequences padded at the end (see `task`). It is
    cut into halves, and each half again, as long as this saves more than LEAST_SAVED positions of padding.
    """
    lengths = sum((ids != PAD).sum(axis=1) for ids in batch.inputs)
    halves = [take(batch, rows) for rows in np.array_split(np.argsort(lengths, kind="stable"), 2)]
    if len(lengths) < 2 or num_positions(batch) - sum(map(num_positions, halves)) <= LEAST_SAVED:
        return [batch]
    return [part for half in halves for part in cut_by_length(half)]


def take(batch: Any, rows: np.ndarray) -> Any:
    """The sequences `rows` of a batch, without the columns at the end that are all padding.

    Arrays of the same width, such as the ids and their targets, keep the same width.
    """
    arrays = [array[rows] for array in batch]
    longest: dict[int, int] = {}  # {width: without padding}
    for ids in arrays:
        if ids.ndim == 2:
            end = np.flatnonzero((ids != PAD).any(axis=0)).max(initial=0) + 1
            longest[ids.shape[1]] = max(end, longest.get(ids.shape[1], 0))
    return type(batch)(*(ids[:, : longest[ids.shape[1]]] if ids.ndim == 2 else ids for ids in arrays))


def num_positions(batch: Any) -> int:
    """The positions that a model computes, padding included."""
    return sum(ids.size for ids in batch.inputs)
