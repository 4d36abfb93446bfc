"""Which rows of a parametrized test a tier runs."""

import pytest


def some(values, every):
    """All values for `parametrize`, of which the default run tries one of so many and `--exhaustive` all."""
    return [
        pytest.param(*(value if type(value) is tuple else (value,)), marks=pytest.mark.exhaustive if i % every else ())
        for i, value in enumerate(values)
    ]
