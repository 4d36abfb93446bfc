"""The process keeps freed memory, and takes as many threads as it was told."""

import resource
import sys
import threading

import numpy as np
import pytest

from minitransformer.process import Team, keep_freed_memory, limit_threads, num_threads, threads_are_chosen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_an_array_as_large_as_a_freed_one_costs_no_page_faults():
    if not keep_freed_memory():
        pytest.skip("no glibc")
    pages = 2048  # of 4 kB: 8 MB, which glibc would have mapped and unmapped each time
    np.ones(pages * 512)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(pages * 512)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < pages


def test_a_limit_of_threads_holds_inside_the_context_only():
    outside = num_threads()
    with limit_threads(1):
        assert num_threads() == 1
    assert num_threads() == outside


def test_no_limit_changes_nothing():
    outside = num_threads()
    with limit_threads(None):
        assert num_threads() == outside


def test_the_users_choice_of_threads_is_seen(monkeypatch):
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    assert not threads_are_chosen()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_are_chosen()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_a_team_gives_results_in_the_order_of_the_items(size, length):
    items = list(range(length))
    assert Team(size).map(lambda a, b: 10 * a + b, items, items[::-1]) == [10 * i + length - 1 - i for i in items]


def test_a_team_works_at_the_same_time():
    meeting = threading.Barrier(3, timeout=20)
    Team(3).map(lambda _: meeting.wait(), range(3))  # a BrokenBarrierError if one of them waits alone


def test_a_team_of_one_works_in_the_thread_that_asks():
    assert Team(1).map(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3


def test_an_error_in_a_team_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        Team(2).map(lambda x: 1 // x, [1, 2, 0, 3])


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 keeps them for each thread apart")
def test_a_team_keeps_the_callers_numpy_settings():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        Team(2).map(lambda x: np.array([1.0]) / x, [np.zeros(1), np.zeros(1)])
