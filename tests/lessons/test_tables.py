"""Printed tables fit into the terminal."""

from support.tables import show

import numpy as np
import pytest

NUMBERS = np.arange(16).reshape(2, 8) / 8


@pytest.mark.parametrize(("columns", "lines", "widest"), [("100", 3, 67), ("66", 3, 64), ("60", 6, 36), ("20", 24, 15)])
def test_columns_that_do_not_fit_come_below_the_others(columns, lines, widest, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    show("a title", NUMBERS, ["one", "another"], [*"abcdefgh"])
    title, *table = capsys.readouterr().out.splitlines()
    assert (title, len(table), max(map(len, table))) == ("a title", lines, widest)
    numbers = [[float(word) for word in line.split()[1:]] for line in table if line.split()[0] in ("one", "another")]
    one, another = (np.concatenate(numbers[i::2]) for i in (0, 1))
    assert np.array_equal([one, another], NUMBERS.round(3))
    assert [name for line in table if "." not in line for name in line.split()] == [*"abcdefgh"]
