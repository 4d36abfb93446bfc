"""Two threads of one process do not disturb each other: which library, which formulas, how many threads, and no bit."""

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from minitransformer.backend import backend_name, to_host, use_backend, xp
from minitransformer.data import get_task
from minitransformer.kernels.dispatch import fused, plain_formulas
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.process import Team, limit_threads, num_threads
from minitransformer.training import TrainingSettings, train
from minitransformer.training import parallel as data_parallel
from tests.strict.strict import strict

PATIENCE = 20  # seconds, for another thread to come
CUPY = SimpleNamespace(__name__="cupy", ndarray=np.ndarray)  # enough of it to be chosen


@contextlib.contextmanager
def another_thread():
    """A thread that waits for work -> do(function): its result, computed there."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result(PATIENCE)


def back_to_numpy(test):
    """A test that switches for good is undone; a decorator, which the museum of wrong gradients applies as well."""

    @functools.wraps(test)
    def switching_test(*arguments, **named):
        try:
            test(*arguments, **named)
        finally:
            use_backend("numpy")

    return switching_test


@back_to_numpy
def test_a_block_is_not_seen_by_another_thread():
    with another_thread() as do, use_backend(strict):
        assert do(backend_name) == "numpy"
        assert do(lambda: xp.zeros) is np.zeros
        assert backend_name() == "strict"


@back_to_numpy
def test_blocks_that_overlap_in_two_threads_end_each_for_itself():
    with another_thread() as do, contextlib.ExitStack() as here:
        here.enter_context(use_backend(strict))
        theirs = do(lambda: use_backend(CUPY).__enter__())
        here.close()
        assert (backend_name(), do(backend_name)) == ("numpy", "cupy")
        do(theirs.__exit__)
    assert backend_name() == "numpy"


@back_to_numpy
def test_a_switch_without_a_block_holds_in_its_thread_from_there_on():
    with another_thread() as do:
        do(lambda: use_backend(strict) and None)
        assert (backend_name(), do(backend_name)) == ("numpy", "strict")
        use_backend(CUPY)
        assert (backend_name(), do(backend_name)) == ("cupy", "strict")


@back_to_numpy
def test_a_new_thread_begins_with_what_the_environment_says():
    use_backend(strict)
    with another_thread() as do:
        assert do(backend_name) == "numpy"


@back_to_numpy
def test_a_switch_inside_a_block_ends_with_the_block():
    with use_backend("numpy"):
        use_backend(strict)
        assert backend_name() == "strict"
    assert backend_name() == "numpy"


@back_to_numpy
def test_the_threads_of_a_team_see_the_block_of_the_thread_that_they_work_for():
    meeting = threading.Barrier(2)

    def seen(_):
        meeting.wait(PATIENCE)
        return backend_name()

    team, other = Team(2), Team(2)
    with use_backend(strict):
        assert team.map(seen, range(2)) == ["strict"] * 2
    assert team.map(seen, range(2)) == ["numpy"] * 2
    assert other.map(seen, range(2)) == ["numpy"] * 2


@fused(lambda x: "fused")
def which(x):
    """Tells which function was called."""
    return "plain"


@back_to_numpy
def test_plain_formulas_are_for_the_thread_that_asks_and_its_team():
    with another_thread() as do, use_backend(CUPY):
        theirs = do(lambda: use_backend(CUPY).__enter__())
        with plain_formulas():
            assert (which(0), do(lambda: which(0))) == ("plain", "fused")
            assert Team(2).map(which, range(2)) == ["plain"] * 2
        assert which(0) == "fused"
        do(theirs.__exit__)


def blas_threads():
    """What the library of the matrix product says itself."""
    controller = pytest.importorskip("threadpoolctl").ThreadpoolController()
    return max(info["num_threads"] for info in controller.info() if info["user_api"] == "blas")


def test_limits_that_overlap_in_two_threads_hold_as_long_as_each_and_leave_what_was_before():
    before = blas_threads()
    with limit_threads(3), another_thread() as do:
        ours = limit_threads(1, of_team=True)
        theirs = do(lambda: limit_threads(1, of_team=True))
        ours.__exit__()
        assert blas_threads() == 1
        do(theirs.__exit__)
        assert blas_threads() == 3
    assert blas_threads() == before


def test_a_team_at_work_counts_before_a_newer_limit_and_is_not_taken_for_one():
    before = blas_threads()
    with limit_threads(3):
        with limit_threads(1, of_team=True), another_thread() as do:
            newer = do(lambda: limit_threads(2))
            assert (blas_threads(), num_threads()) == (1, 2)
            do(newer.__exit__)
            assert (blas_threads(), num_threads()) == (1, 3)
        assert (blas_threads(), num_threads()) == (3, 3)
    with limit_threads(1, of_team=True):
        assert (blas_threads(), num_threads()) == (1, before)


def run_together(*functions):
    """All functions in threads of their own, which begin at the same time -> their results."""
    meeting = threading.Barrier(len(functions))

    def run(function):
        meeting.wait(PATIENCE)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [job.result() for job in [pool.submit(run, function) for function in functions]]


def trained(seed, library="numpy", **settings):
    """A little training with dropout -> its losses and its weights, as bytes."""
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2, "max_len": 32}
    with use_backend(library):
        net = Transformer(TransformerConfig(vocab_size=29, dropout=0.2, attention_dropout=0.1, **sizes), seed=seed)
        batches = TrainingSettings(steps=12, batch_size=6, warmup=4, seed=seed, average_every=2, **settings)
        history = train(net, get_task("copy"), batches)
        return history.losses, b"".join(to_host(parameter.data).tobytes() for parameter in net.parameters())


PAIRS = [
    ({"seed": 1}, {"seed": 2}),
    ({"seed": 1}, {"seed": 1}),
    ({"seed": 1}, {"seed": 2, "library": strict}),
    ({"seed": 1, "accumulate": 3}, {"seed": 2, "ema": 0.9}),
]


@back_to_numpy
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_trainings_in_two_threads_give_the_bits_that_each_gives_alone(one, other):
    alone = [trained(**one), trained(**other)]
    assert alone[0][1] != trained(seed=9)[1]
    for _ in range(3):
        assert run_together(lambda: trained(**one), lambda: trained(**other)) == alone


@mock.patch.object(data_parallel, "LEAST", 1)
def test_trainings_that_have_a_team_each_give_the_bits_that_each_gives_alone(monkeypatch):
    monkeypatch.setattr("minitransformer.training.trainer.num_threads", lambda: 2)
    before = blas_threads()
    alone = [trained(seed=1), trained(seed=2, accumulate=2)]
    for _ in range(3):
        assert run_together(lambda: trained(seed=1), lambda: trained(seed=2, accumulate=2)) == alone
    assert blas_threads() == before
