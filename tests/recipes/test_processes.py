"""What a recipe does for several processes: threads, memory, and what a run that is resumed in another number keeps."""

import dataclasses
import threading
import types
from pathlib import Path

import pytest

from minitransformer.models import TransformerConfig
from minitransformer.recipes import get_recipe, memory, processes
from minitransformer.recipes.folder import RunFolder
from minitransformer.recipes.memory import check_memory
from minitransformer.system.process import THREAD_VARIABLES, limit_threads
from minitransformer.training.parallel.faults import Disagreement
from minitransformer.training.saving.checkpointer import SavedRun
from tests.ranks import outcomes_in_ranks

COPY = get_recipe("copy")


@pytest.fixture
def start(monkeypatch):
    """start(N, here=M): from now on this process is one of N, of which M are on this machine (default: all)."""

    def start(size, here=None):
        one = types.SimpleNamespace(size=size, processes_here=here or size)
        for user in (processes, memory):
            monkeypatch.setattr(user, "connect", lambda: one)

    return start


def config(d_model=256):
    return TransformerConfig(
        vocab_size=29, d_model=d_model, num_heads=4, d_ff=512, num_layers=1, max_len=128, dropout=0.0
    )


@pytest.mark.parametrize(("size", "threads", "useful"), [(1, 8, 8), (2, 4, 8), (3, 2, 8), (8, 1, 4), (20, 1, 2)])
def test_processes_of_one_machine_share_its_cores(size, threads, useful, start, monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    options = dataclasses.replace(COPY.defaults, batch_size=64)
    with limit_threads(8):
        start(size)
        assert processes.threads_of_each(config(), options) == threads
        assert processes.threads_of_each(config(d_model=64), options) == 1, "a narrow model keeps one busy"
        start(size, here=1)
        assert processes.threads_of_each(config(), options) == useful


def test_the_environment_limits_the_threads_of_each_process(start, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    start(2)
    with limit_threads(5):
        assert processes.threads_of_each(config(), COPY.defaults) == 5
        assert processes.threads_of_each(config(d_model=64), COPY.defaults) == 1, "a narrow model keeps one busy"


def saved_by(processes, threads=1):
    rngs = [{}] * (processes * threads)
    facts = {"step": 3, "processes": processes, "dropout_rngs": rngs}
    return SavedRun(types.SimpleNamespace(config=config()), ({}, facts), {}, Path())


@pytest.mark.parametrize(
    ("before", "threads", "after", "each"), [(1, 8, 4, 2), (2, 4, 1, 4), (2, 1, 4, 1), (2, 4, 2, 4), (1, 2, 8, 1)]
)
def test_resumed_processes_have_no_more_threads_in_total_than_before(before, threads, after, each, start):
    saved = saved_by(before, threads)
    assert (saved.processes, saved.num_threads) == (before, threads)
    start(after)
    assert processes.threads_as_before(saved) == each


def test_backend_that_one_process_alone_has_is_refused_by_all(monkeypatch):
    """As with MINITRANSFORMER_BACKEND in the environment of one."""

    def begin(communicator):
        own.communicator = communicator
        processes.agree("copy", COPY.defaults, config(), {}, 0)

    own = threading.local()
    monkeypatch.setattr(processes, "connect", lambda: own.communicator)
    monkeypatch.setattr(processes, "join", lambda: own.communicator)
    monkeypatch.setattr(processes, "backend_name", lambda: "cupy" if own.communicator.rank == 1 else "numpy")
    errors = outcomes_in_ranks(3, begin)
    assert [type(error) for error in errors] == [Disagreement] * 3
    assert str(errors[2]) == "the backend is cupy in rank 1, and numpy in rank 0"


@pytest.mark.parametrize(("size", "command"), [(1, ""), (3, "mpiexec -n 3 ")])
def test_advice_starts_as_many_processes_as_there_are(size, command, start, tmp_path):
    start(size)
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    (folder.checkpoints / "step-00000001.safetensors").touch()
    with pytest.raises(ValueError, match=f"resume it with `{command}minitransformer train --resume {folder}`"):
        folder.check_unused(overwrite=False)


def test_other_options_and_processes_of_a_resumed_run_are_said(start):
    before = dataclasses.replace(COPY.defaults, threads=1, factor=0.3)
    options = dataclasses.replace(before, threads=2, deterministic=True)
    start(3)
    assert list(processes.changes(before, options, saved_by(2))) == [
        "from now on --threads 2 instead of 1",
        "from now on --deterministic True instead of False",
        "from now on 3 processes instead of 2",
    ]
    start(2)
    assert list(processes.changes(before, before, saved_by(2))) == []


def test_processes_share_the_free_memory_and_the_batch(start, monkeypatch):
    monkeypatch.setattr("minitransformer.recipes.memory.free_memory", lambda: 10**9)
    options = dataclasses.replace(COPY.defaults, threads=1)
    data = COPY.data(options)
    model_class, tiny = COPY.model(options, data)

    def needed(size, batch_size):
        """The memory that the message names."""
        start(size)
        changed = dataclasses.replace(options, batch_size=batch_size)
        with pytest.raises(ValueError, match="this training needs about") as error:
            check_memory(COPY, changed, data, model_class, tiny, resumed=False)
        return float(str(error.value).split()[4].replace(",", ""))

    assert needed(4, 2**20) == pytest.approx(needed(1, 2**20), rel=0.01), "four quarters"


def test_sharding_in_one_process_is_refused_unless_mpiexec_has_started_it(monkeypatch):
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="--shard-optimizer needs several processes: start them with mpiexec -n N"):
        processes.check_launched({"shard_optimizer": True})
    processes.check_launched({"steps": 3})  # a resumed run may have it from before
    monkeypatch.setenv("PMI_RANK", "0")
    processes.check_launched({"shard_optimizer": True})
