"""Parts of a batch with sequences of about the same length (paper section 5.1), so that less of the work is padding.

The paper draws batches of about the same length. Here a batch is drawn as it is and then cut: each part is padded only
to its own longest sequence, and the gradients of the parts add up to that of the batch. So the samples, the loss and
the gradient are those of the whole batch, except for rounding.
"""

from typing import Any

import numpy as np

from minitransformer.config import OWN_IDS, ModelConfig

LEAST_SAVED = 128  # positions: what every part costs besides its positions, measured with the tiny model


def cut_by_length(batch: Any, config: ModelConfig = OWN_IDS) -> list[Any]:
    """The batch in parts, from the shortest sequences to the longest, without the columns that are all padding.

    `batch` is a NamedTuple of arrays with the batch as first axis, the sequences padded at the end as `config` says. It
    is cut into halves, and each half again, as long as this saves more than LEAST_SAVED positions of padding. A batch
    that is not worth cutting is returned as it is.
    """
    lengths = np.stack([config.lengths(ids) for ids in batch.inputs], axis=1)  # (B, number of inputs)
    order = np.argsort(lengths.sum(axis=1), kind="stable")
    parts = _cut(order, lengths)
    return [batch] if len(parts) == 1 else [take(batch, rows, config) for rows in parts]


def _cut(rows, lengths):
    """The indices `rows`, sorted by length, in parts."""
    halves = np.array_split(rows, 2)
    saved = num_positions(lengths[rows]) - sum(num_positions(lengths[half]) for half in halves)
    return [rows] if saved <= LEAST_SAVED else [part for half in halves for part in _cut(half, lengths)]


def num_positions(lengths: np.ndarray) -> int:
    """The positions of sequences of these lengths (B, number of inputs), each input padded to its longest."""
    return len(lengths) * int(lengths.max(axis=0, initial=0).sum())


def take(batch: Any, rows: np.ndarray, config: ModelConfig = OWN_IDS) -> Any:
    """The sequences `rows` of a batch, without the columns at the end that are all padding.

    Arrays of the same width, such as the ids and their targets, keep the same width.
    """
    arrays = [array[rows] for array in batch]
    longest: dict[int, int] = {}  # {width: without padding}
    for ids in arrays:
        if ids.ndim == 2:
            end = max(1, config.lengths(ids).max(initial=0))
            longest[ids.shape[1]] = max(end, longest.get(ids.shape[1], 0))
    return type(batch)(*(ids[:, : longest[ids.shape[1]]] if ids.ndim == 2 else ids for ids in arrays))
