"""The process keeps freed memory and uses the number of threads that it is told to use."""

import resource
import sys
import threading

import numpy as np
import pytest

from minitransformer.system.process import (
    ThreadTeam,
    keep_freed_memory,
    threads_are_chosen,
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_an_array_as_large_as_a_freed_one_costs_no_page_faults():
    if not keep_freed_memory():
        pytest.skip("no glibc")
    pages = 2048  # of 4 kB: 8 MB, which glibc would have mapped and unmapped each time
    np.ones(pages * 512)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(pages * 512)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < pages


def test_environment_variables_for_threads_are_recognized(monkeypatch):
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    assert not threads_are_chosen()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_are_chosen()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_team_returns_results_in_the_order_of_the_items(size, length):
    items = list(range(length))
    assert ThreadTeam(size).map(lambda a, b: 10 * a + b, items, items[::-1]) == [10 * i + length - 1 - i for i in items]


def test_team_of_one_works_in_the_calling_thread():
    assert ThreadTeam(1).map(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3


def test_exception_in_a_team_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        ThreadTeam(2).map(lambda x: 1 // x, [1, 2, 0, 3])


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 has separate settings for each thread")
def test_team_keeps_the_callers_numpy_settings():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        ThreadTeam(2).map(lambda x: np.array([1.0]) / x, [np.zeros(1), np.zeros(1)])
