"""Patterns: the mask of each kind is the one in its paper, and a tile is a part of the mask."""

import numpy as np
import pytest

from minitransformer.functional.since_2017.patterns import Pattern, ShiftedPattern
from tests.helpers import host

T, S = 9, 11


def mask_by_loops(T, S, rule):
    return np.array([[rule(t, s) for s in range(S)] for t in range(T)])


RULES = [
    (Pattern(), lambda t, s: True),
    (Pattern(causal=True), lambda t, s: s <= t),
    (Pattern(causal=True, window=1), lambda t, s: s == t),
    (Pattern(causal=True, window=4), lambda t, s: s in (t - 3, t - 2, t - 1, t)),
    (Pattern(window=3), lambda t, s: s in (t - 2, t - 1, t, t + 1, t + 2)),
    (Pattern(window=2, num_global=2), lambda t, s: abs(t - s) < 2 or t in (0, 1) or s in (0, 1)),
    (Pattern(causal=True, window=2, num_global=1), lambda t, s: s in (0, t - 1, t)),
    (Pattern(causal=True, window=2, stride=4), lambda t, s: s in (t, t - 1, t - 4, t - 8)),
    (Pattern(stride=5), lambda t, s: (t - s) in (-10, -5, 0, 5)),
]


@pytest.mark.parametrize(("pattern", "rule"), RULES, ids=lambda value: str(value) if isinstance(value, Pattern) else "")
def test_mask_of_a_pattern_is_its_rule_for_every_pair(pattern, rule):
    assert (host(pattern.mask(T, S))[0, 0] == mask_by_loops(T, S, rule)).all()


def entries(tile, rows, columns):
    """What is allowed in a tile, as a part of the mask."""
    mask = np.zeros((rows.stop, columns.stop), bool)
    if tile is not None:
        mask[rows, tile.columns] = True if tile.forbidden is None else ~tile.forbidden.T
    return mask[rows, columns]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("pattern", [row[0] for row in RULES], ids=str)
def test_tiles_put_together_are_the_mask(pattern, size):
    mask = np.zeros((T, S), bool)
    for top in range(0, T, size):
        for left in range(0, S, size):
            rows, columns = slice(top, min(top + size, T)), slice(left, min(left + size, S))
            tile = pattern.tile(rows, columns)
            mask[rows, columns] = entries(tile, rows, columns)
            if tile is not None:
                assert mask[rows, tile.columns].any(axis=0)[[0, -1]].all()
                assert tile.forbidden is None or tile.forbidden.any()
    assert (mask == host(pattern.mask(T, S))[0, 0]).all()


def test_tiles_of_a_shifted_pattern_are_those_of_later_queries():
    pattern = Pattern(causal=True, window=2, stride=4, num_global=1)
    shifted, mask = ShiftedPattern(pattern, 5), host(pattern.mask(T, S))[0, 0]
    for rows, columns in [(slice(0, 2), slice(0, 3)), (slice(1, 4), slice(2, 9)), (slice(0, 1), slice(6, 11))]:
        assert (
            entries(shifted.tile(rows, columns), rows, columns) == mask[5 + rows.start : 5 + rows.stop, columns]
        ).all()


def test_queries_that_start_later_see_what_they_would_see_in_the_whole():
    pattern = Pattern(causal=True, window=3, stride=4)
    assert (host(pattern.mask(3, S, start=6)) == host(pattern.mask(T, S))[:, :, 6:]).all()
