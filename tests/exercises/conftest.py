"""A way to try many answers on the same problems."""

import pytest

from minitransformer.exercises.cases import make_problem
from minitransformer.exercises.diagnose import diagnose_task


def some(values, every):
    """All values for `parametrize`, of which the default run tries one of so many and `--exhaustive` all."""
    return [
        pytest.param(*(value if type(value) is tuple else (value,)), marks=pytest.mark.exhaustive if i % every else ())
        for i, value in enumerate(values)
    ]


MADE = {}  # problems, by their tasks and cases


@pytest.fixture(autouse=True)
def problems_made_once(monkeypatch):
    """For speed, the checker makes each problem once, and not again for each answer that is tried on it."""

    def make_once(task, given, case):
        key = id(task), str(case), case.seed
        return MADE.get(key) or MADE.setdefault(key, make_problem(task, given, case))

    monkeypatch.setitem(diagnose_task.__globals__, "make_problem", make_once)
