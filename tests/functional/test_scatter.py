"""Rows are added to a table at their ids; what does not fit is refused before anything changes."""

import numpy as np
import pytest

from minitransformer.functional.scatter import scatter_add
from tests.helpers import device, host, random_array, relative_error

V, C, N = 9, 3, 20


def added_one_by_one(table, ids, rows):
    """The same in loops."""
    table = host(table).copy()
    for i, row in zip(ids, host(rows), strict=True):
        table[i] += row
    return table


@pytest.mark.parametrize(
    "ids",
    [
        np.array([4]),
        np.array([0, 0]),
        np.array([8, 0, 8, 8]),
        np.full(7, 2),
        np.arange(V)[::-1].copy(),
        np.repeat([5, 1, 3, 0], [1, 2, 8, 9]),
    ],
    ids=str,
)
def test_each_id_gets_all_of_its_rows(ids):
    rng = np.random.default_rng(1)
    table, rows = random_array(rng, V, C).copy(), random_array(rng, len(ids), C)
    expected = added_one_by_one(table, ids, rows)
    scatter_add(table, ids, rows)
    assert relative_error(table, expected) <= 1e-14


def test_no_rows_at_all_change_nothing():
    table = device(np.ones((V, C)))
    scatter_add(table, np.zeros(0, np.int64), device(np.ones((0, C))))
    assert (host(table) == 1).all()


@pytest.mark.parametrize(
    ("table", "ids", "rows", "error", "message"),
    [
        ((V, C, 1), np.zeros(N, int), (N, C), ValueError, r"table must be of shape \(V, C\)"),
        ((V,), np.zeros(N, int), (N,), ValueError, r"table must be of shape \(V, C\)"),
        ((V, C), np.zeros(N, int), (N + 1, C), ValueError, "rows must be of shape"),
        ((V, C), np.zeros(N, int), (N, 1), ValueError, "rows must be of shape"),
        ((V, C), np.zeros((N, 1), int), (N, C), ValueError, "ids must be of shape"),
        ((V, C), np.full(N, V), (N, C), IndexError, f"token id {V}"),
        ((V, C), np.full(1, V), (1, C), IndexError, f"token id {V}"),
        ((V, C), np.full(N, -1), (N, C), IndexError, "token id -1"),
        ((V, C), np.zeros(N), (N, C), TypeError, "must be integer"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_added(table, ids, rows, error, message):
    table = device(np.zeros(table))
    with pytest.raises(error, match=message):
        scatter_add(table, ids, device(np.ones(rows)))
    assert not host(table).any()
