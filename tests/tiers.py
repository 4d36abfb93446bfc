"""Which rows of a parametrized test a tier runs."""

import pytest


def some(values, every, guard=1):
    """All values for `parametrize`: the default run tries one of `every`, `--exhaustive` of `guard`, `--weekly` all."""
    marks = [
        pytest.mark.weekly if i % guard else pytest.mark.exhaustive if i % every else () for i in range(len(values))
    ]
    rows = [value if type(value) is tuple else (value,) for value in values]
    return [pytest.param(*row, marks=mark) for row, mark in zip(rows, marks, strict=True)]
