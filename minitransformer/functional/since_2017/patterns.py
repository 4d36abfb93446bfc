"""Patterns: which positions may attend to which, known for a whole tile of queries and keys at a time.

A mask (T, S) of booleans costs as much memory as the weights that tiled attention avoids. A pattern says for each tile
whether nothing in it is allowed (then it is never visited), everything (then it needs no mask), or some of it (then the
keys at its ends that nothing may attend to are left out).
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer, check_switch


class Tile(NamedTuple):
    """What tiled attention computes of a tile."""

    columns: slice  # the keys that are left without those at both ends that no query of the tile may attend to
    forbidden: np.ndarray | None  # (s, t), the pairs of a key and a query that are not allowed; None if all are


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A pattern of positions: everything, causal, windowed, strided, and combinations.

    Query t may attend to key s unless s is in the future (with `causal`), if one of these holds:

        |t - s| < window            a window of 1 is the token itself (Beltagy et al. 2020, "Longformer", section 3.1);
                                    with `causal` it is Mistral's (Jiang et al. 2023)
        (t - s) mod stride = 0      the strided pattern, together with a window (Child et al. 2019, section 4.2)
        t < num_global              the first tokens see everything ...
        s < num_global              ... and everything sees them (Longformer's global attention)

    Without window and stride, every key that is not in the future may be attended to. Raises TypeError or ValueError,
    naming the field, for invalid values.
    """

    causal: bool = False
    window: int | None = None
    stride: int | None = None
    num_global: int = 0

    def __post_init__(self) -> None:
        check_switch("causal", self.causal)
        for name in ("window", "stride"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least=1)
        check_integer("num_global", self.num_global, least=0)

    @property
    def is_sparse(self) -> bool:
        """Whether some keys that are not in the future are left out."""
        return self.window is not None or self.stride is not None

    def allowed(self, t: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Whether queries at positions t may attend to keys at positions s: integers that broadcast together."""
        near = np.full(np.broadcast_shapes(t.shape, s.shape), not self.is_sparse)
        if self.window is not None:
            near |= abs(t - s) < self.window
        if self.stride is not None:
            near |= (t - s) % self.stride == 0
        if self.num_global:
            near |= (t < self.num_global) | (s < self.num_global)
        return near & (s <= t) if self.causal else near

    def mask(self, T: int, S: int, start: int = 0) -> xp.ndarray:
        """The pattern as a mask for full attention -> (1, 1, T, S). The first query is at position `start`."""
        t, s = np.arange(start, start + T), np.arange(S)
        return to_device(self.allowed(t[:, None], s))[None, None]

    def tile(self, rows: slice, columns: slice) -> Tile | None:
        """The tile of the queries `rows` and the keys `columns`, or None if nothing in it is allowed."""
        # only the distance counts, except for the global tokens; so a few tiles stand for all
        g = self.num_global
        first, last, forbidden = _tile(
            self,
            rows.start - columns.start,
            rows.stop - rows.start,
            columns.stop - columns.start,
            min(max(g - rows.start, 0), rows.stop - rows.start),
            min(max(g - columns.start, 0), columns.stop - columns.start),
        )
        return Tile(slice(columns.start + first, columns.start + last), forbidden) if last else None


@dataclasses.dataclass(frozen=True)
class ShiftedPattern:
    """`pattern` for a part of the queries: the first is at position `start`, as in decoding; the keys begin at 0."""

    pattern: Pattern
    start: int

    def tile(self, rows: slice, columns: slice) -> Tile | None:
        """As `Pattern.tile`."""
        return self.pattern.tile(slice(rows.start + self.start, rows.stop + self.start), columns)


@functools.lru_cache(maxsize=4096)
def _tile(pattern, distance, t, s, global_rows, global_columns):
    """The first and the last key that some of t queries sees, of s keys, and the forbidden pairs between.

    The first few queries and keys are global; the first two are `distance` apart.
    """
    plain = dataclasses.replace(pattern, num_global=0)
    queries, keys = np.arange(distance, distance + t)[:, None], np.arange(s)
    entries = plain.allowed(queries, keys)
    if pattern.is_sparse:
        seen = (np.arange(t)[:, None] < global_rows) | (np.arange(s) < global_columns)
        entries |= seen & (keys <= queries) if pattern.causal else seen
    seen = np.flatnonzero(entries.any(axis=0))
    if not len(seen):
        return 0, 0, None
    first, last = int(seen[0]), int(seen[-1]) + 1
    forbidden = np.ascontiguousarray(~entries[:, first:last].T)
    return first, last, forbidden if forbidden.any() else None


TilePattern = Pattern | ShiftedPattern  # what tiled attention asks about its tiles
EVERYTHING = Pattern()
