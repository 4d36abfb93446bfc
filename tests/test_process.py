"""The process keeps freed memory, and takes as many threads as it was told."""

import resource
import sys

import numpy as np
import pytest

from minitransformer.process import keep_freed_memory, limit_threads, num_threads, threads_are_chosen


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
