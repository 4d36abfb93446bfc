"""Two threads of one process do not affect each other: backend, fused kernels, BLAS threads and training results."""

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import backend_name, fused, to_host, use_backend
from minitransformer.data import get_task
from minitransformer.functional import tiled_attention, tiled_attention_backward
from minitransformer.functional.since_2017 import tiles
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.process import (
    THREAD_VARIABLES,
    ThreadTeam,
    blas_threads,
    limit_threads,
    team_of_blas,
)
from minitransformer.training import AverageOfLast, TrainingSettings, noam, train
from minitransformer.training.parallel import threads as parallel
from tests.helpers import plain_formulas
from tests.strict.strict import strict

PATIENCE = 20  # seconds to wait for another thread
CUPY = SimpleNamespace(__name__="cupy", ndarray=np.ndarray)  # enough of CuPy for use_backend


@contextlib.contextmanager
def another_thread():
    """Start a thread and yield do(function), which calls a function there and returns its result."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result(PATIENCE)


def back_to_numpy(test):
    """Undo a switch of the backend after the test. A decorator, because the museum calls tests without fixtures."""

    @functools.wraps(test)
    def switching_test(*arguments, **named):
        try:
            test(*arguments, **named)
        finally:
            use_backend("numpy")

    return switching_test


@back_to_numpy
def test_overlapping_with_blocks_of_two_threads_are_independent():
    with another_thread() as do, contextlib.ExitStack() as here:
        here.enter_context(use_backend(strict))
        theirs = do(lambda: use_backend(CUPY).__enter__())
        here.close()
        assert (backend_name(), do(backend_name)) == ("numpy", "cupy")
        do(theirs.__exit__)
    assert backend_name() == "numpy"


@back_to_numpy
def test_switch_without_a_with_block_stays_in_its_thread():
    with another_thread() as do:
        do(lambda: use_backend(strict) and None)
        assert (backend_name(), do(backend_name)) == ("numpy", "strict")
        use_backend(CUPY)
        assert (backend_name(), do(backend_name)) == ("cupy", "strict")


@back_to_numpy
def test_new_thread_starts_with_the_default_backend():
    use_backend(strict)
    with another_thread() as do:
        assert do(backend_name) == "numpy"


@back_to_numpy
def test_switch_inside_a_with_block_ends_with_it():
    with use_backend("numpy"):
        use_backend(strict)
        assert backend_name() == "strict"
    assert backend_name() == "numpy"


@back_to_numpy
def test_threads_of_a_team_use_the_backend_of_their_caller():
    meeting = threading.Barrier(2)

    def seen(_):
        meeting.wait(PATIENCE)
        return backend_name()

    team, other = ThreadTeam(2), ThreadTeam(2)
    with use_backend(strict):
        assert team.map(seen, range(2)) == ["strict"] * 2
    assert team.map(seen, range(2)) == ["numpy"] * 2
    assert other.map(seen, range(2)) == ["numpy"] * 2


@fused
def which(x):
    """Tell which function was called."""
    return "plain"


@back_to_numpy
def test_plain_formulas_hold_in_the_calling_thread_and_its_team(monkeypatch):
    monkeypatch.setattr(kernels, "which", lambda x: "fused", raising=False)
    with another_thread() as do, use_backend(CUPY):
        theirs = do(lambda: use_backend(CUPY).__enter__())
        with plain_formulas():
            assert (which(0), do(lambda: which(0))) == ("plain", "fused")
            assert ThreadTeam(2).map(which, range(2)) == ["plain"] * 2
        assert which(0) == "fused"
        do(theirs.__exit__)


def threads_in_use():
    """The number of threads that BLAS itself reports."""
    controller = pytest.importorskip("threadpoolctl").ThreadpoolController()
    return max(info["num_threads"] for info in controller.info() if info["user_api"] == "blas")


def test_overlapping_limits_of_two_threads_end_independently_and_restore_the_count():
    before = threads_in_use()
    with limit_threads(3), another_thread() as do:
        ours = limit_threads(1, of_team=True)
        theirs = do(lambda: limit_threads(1, of_team=True))
        ours.__exit__()
        assert threads_in_use() == 1
        do(theirs.__exit__)
        assert threads_in_use() == 3
    assert threads_in_use() == before


def test_limit_of_a_team_wins_over_a_newer_limit_and_num_threads_ignores_it():
    before = threads_in_use()
    with limit_threads(3):
        with limit_threads(1, of_team=True), another_thread() as do:
            newer = do(lambda: limit_threads(2))
            assert (threads_in_use(), blas_threads()) == (1, 2)
            do(newer.__exit__)
            assert (threads_in_use(), blas_threads()) == (1, 3)
        assert (threads_in_use(), blas_threads()) == (3, 3)
    with limit_threads(1, of_team=True):
        assert (threads_in_use(), blas_threads()) == (1, before)


def test_threads_of_a_team_compute_their_matrix_products_alone():
    with limit_threads(3):
        assert ThreadTeam(2).map(lambda _: threads_in_use(), range(2)) == [1, 1]
        assert threads_in_use() == 3


class WatchedTask:
    """The copy task, which notes the number of BLAS threads whenever a step begins."""

    def __init__(self):
        self.seen = set()

    def batch(self, rng, size):
        self.seen.add(threads_in_use())
        return get_task("copy").batch(rng, size)


@pytest.mark.parametrize(
    ("width", "rows", "max_len", "expected"), [(12, 64, 900, 1), (128, 4, 32, 1), (128, 16, 64, 2)]
)
def test_train_uses_no_more_blas_threads_than_the_model_and_its_batches_keep_busy(
    width, rows, max_len, expected, monkeypatch
):
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    sizes = {"num_heads": 2, "d_ff": 8, "num_layers": 1, "max_len": max_len}
    task = WatchedTask()
    with limit_threads(3):
        net = Transformer(TransformerConfig(vocab_size=29, d_model=width, **sizes))
        train(net, task, settings=TrainingSettings(steps=1, batch_size=rows))
        assert task.seen == {expected}
        assert threads_in_use() == 3


def run_together(*functions):
    """Call each function in a thread of its own, all at the same time, and return the results."""
    meeting = threading.Barrier(len(functions))

    def run(function):
        meeting.wait(PATIENCE)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [job.result() for job in [pool.submit(run, function) for function in functions]]


def trained(seed, library="numpy", threads=1, **settings):
    """Train a small model with dropout, and return its losses and the bytes of its weights."""
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1, "max_len": 32}
    with use_backend(library):
        net = Transformer(TransformerConfig(vocab_size=29, dropout=0.2, attention_dropout=0.1, **sizes), seed=seed)
        history = train(
            net,
            get_task("copy"),
            schedule=functools.partial(noam, d_model=12, warmup=4),
            settings=TrainingSettings(steps=5, batch_size=6, seed=seed, **settings),
            averaging=AverageOfLast(5, interval=2),
            num_threads=threads,
        )
        return history.losses, b"".join(to_host(parameter.data).tobytes() for parameter in net.parameters())


@back_to_numpy
@mock.patch.object(parallel, "MIN_NUMBERS", 1)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seed": 1}, {"seed": 2, "library": strict}),
        ({"seed": 1, "threads": 2}, {"seed": 2, "threads": 2, "grad_accumulation_steps": 2}),
    ],
    ids=["on two libraries", "with two teams"],
)
def test_training_in_two_threads_gives_the_same_bits_as_alone(one, other):
    before = threads_in_use()
    alone = [trained(**one), trained(**other)]
    assert alone[0][1] != alone[1][1]
    assert run_together(lambda: trained(**one), lambda: trained(**other)) == alone
    assert threads_in_use() == before


@pytest.mark.parametrize("with_bias", [False, True])
def test_tiled_attention_in_two_threads_gives_the_same_bits_as_in_one(with_bias):
    """Each part of the heads is computed by one thread, with its own dropout; parts may share the keys and the bias."""
    rng = np.random.default_rng(4)
    q, k, v, dy = (rng.standard_normal((3, heads, 40, 8), dtype=np.float32) for heads in (6, 2, 2, 6))
    bias = rng.standard_normal((6, 40, 40), dtype=np.float32) if with_bias else None
    results, sizes = [], []
    for count in (1, 2, 2):
        with limit_threads(count), mock.patch.object(tiles, "NUMBERS", 2**9):
            sizes.append(team_of_blas().size)
            y, cache = tiled_attention(q, k, v, None, 0.2, np.random.default_rng(5), bias, tile=(16, 8))
            results.append([y, *tiled_attention_backward(dy, cache)])
    assert sizes == [1, 2, 2]
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_a_team_inside_a_team_is_one_thread():
    assert ThreadTeam(2).map(lambda _: team_of_blas().size, range(4)) == [1] * 4
    with limit_threads(2), ThreadPoolExecutor(1) as other:
        assert team_of_blas() is other.submit(team_of_blas).result()
        assert team_of_blas().size == 2
