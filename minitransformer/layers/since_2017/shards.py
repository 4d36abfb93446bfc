"""Weights in shards: which part of a matrix each rank holds, how to cut it, and how to put the parts together again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_host, xp


class Cut(NamedTuple):
    """Where an array is cut."""

    axis: int  # 0 for the rows of a matrix; -1 for its columns, and for a bias
    units: int  # what is not cut apart: hidden features, or heads of keys with the queries that use them
    widths: tuple[int, ...]  # of the blocks side by side along the axis, such as W^Q | W^K | W^V; each is cut by itself


def first_units(units: int, size: int) -> list[int]:
    """[the first unit of rank 0, of rank 1, ..., `units`]: as even as whole units allow, and none is empty.

    Raises ValueError for more ranks than units.
    """
    if not 1 <= size <= units:
        raise ValueError(f"each rank needs at least one head or feature, and {units} are too few for {size} ranks")
    return [units * rank // size for rank in range(size + 1)]


def split(array: np.ndarray | xp.ndarray, cut: Cut, size: int) -> list[np.ndarray]:
    """The parts of `size` ranks, rank 0 first, on the host. Rank r gets its units of every block."""
    firsts = first_units(cut.units, size)
    blocks = np.split(to_host(array), np.cumsum(cut.widths)[:-1], cut.axis)
    pieces = [
        np.split(block, [first * width // cut.units for first in firsts[1:-1]], cut.axis)
        for block, width in zip(blocks, cut.widths, strict=True)
    ]
    return [np.concatenate(of_one_rank, cut.axis) for of_one_rank in zip(*pieces, strict=True)]


def join(parts: Sequence[np.ndarray | xp.ndarray], cut: Cut) -> np.ndarray:
    """The whole array from the parts of all ranks, on the host: the inverse of `split`."""
    firsts = first_units(cut.units, len(parts))
    pieces = []
    for part, first, end in zip(parts, firsts[:-1], firsts[1:], strict=True):
        widths = [(end - first) * width // cut.units for width in cut.widths]
        pieces.append(np.split(to_host(part), np.cumsum(widths)[:-1], cut.axis))
    return np.concatenate([piece for of_one_block in zip(*pieces, strict=True) for piece in of_one_block], cut.axis)


def join_states(states: Sequence[Mapping[str, np.ndarray]], cuts: Mapping[str, Cut]) -> dict[str, np.ndarray]:
    """The `state_dict` of the whole layer from those of all ranks, rank 0 first. What has no cut is rank 0's."""
    return {
        name: join([state[name] for state in states], cuts[name]) if name in cuts else array
        for name, array in states[0].items()
    }
