"""Rows are added to a table at their ids."""

import numpy as np
import pytest

from minitransformer.functional.embedding import scatter_add
from tests.helpers import device, host, random_array, relative_error

V, C = 9, 3


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


def test_a_single_id_outside_the_table_is_refused():
    with pytest.raises(IndexError, match="the token id 9"):
        scatter_add(device(np.ones((V, C))), np.array([V]), device(np.ones((1, C))))


def test_no_rows_at_all_change_nothing():
    table = device(np.ones((V, C)))
    scatter_add(table, np.zeros(0, np.int64), device(np.ones((0, C))))
    assert (host(table) == 1).all()
