"""A disk or the power that fails at any system call of a training: nothing saved is lost, and no error is hidden."""

import json
import tempfile
from pathlib import Path

import pytest

from minitransformer.training import load_checkpoint
from tests.faults import RUN, TRAIN, Call, attempt, inside, plain_training, run, trials, weights
from tests.kills import same_weights
from tests.power import DurableDisk, distinct, restore


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A training without failures -> its calls, the weights of its model."""
    return plain_training(tmp_path_factory.mktemp("plain"))


FEW = {  # where most is at stake: the kind of call, the file, the error, and whether all later calls fail, too
    "no room for the second checkpoint": ("write", "step-00000002", "ENOSPC", False),
    "second checkpoint cannot be renamed": ("rename", "step-00000002", "EIO", True),
    "lock cannot be deleted": ("unlink", "lock", "EIO", False),
}
MORE = {
    "second checkpoint is not flushed": ("fsync file", "step-00000002", "EIO", False),
    "second checkpoint cannot be closed": ("close", "step-00000002", "EDQUOT", False),
    "older checkpoint cannot be deleted": ("unlink", "step-00000001", "EROFS", False),
    "name of the model is not flushed": ("fsync folder", "copy", "EIO", True),
    "folder of the checkpoints cannot be made": ("mkdir", "checkpoints", "EACCES", False),
    "last checkpoint cannot be kept": ("write", "checkpoint.safetensors", "EIO", True),
}


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in MORE)])
def test_no_error_of_the_disk_is_hidden_or_loses_what_was_saved(name, plain):
    calls, whole = plain
    kind, file, error, for_good = {**FEW, **MORE}[name]
    (*_, number) = (n for n, call in enumerate(calls) if call.kind == kind and call.path.name.startswith(file))
    assert attempt(number, error, for_good, whole) == []


@pytest.mark.weekly
@pytest.mark.parametrize("part", range(20))
def test_every_call_may_fail_with_every_error(part, plain):
    calls, whole = plain
    wrong = {trial: attempt(*trial, whole) for trial in trials(calls)[part::20]}
    assert {trial: what for trial, what in wrong.items() if what} == {}


def test_the_calls_of_a_training_are_noticed(plain):
    calls, _ = plain
    kinds = {"mkdir", "open file", "write", "fsync file", "rename", "fsync folder", "unlink"}
    assert {call.kind for call in calls} >= kinds
    assert Call("rename", RUN / "model.safetensors") in calls
    assert Call("rename", RUN / "checkpoint.safetensors") in calls


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """All that may be on the disk after a power failure -> [(files that were safe, {path: bytes})]."""
    with inside(tmp_path_factory.mktemp("power")), DurableDisk() as disk:
        assert run(*TRAIN).status == 0
    found = distinct(disk.states)
    assert len(found) > 20
    return found


def sound(path, content, folder):
    """Whether a file is complete."""
    if path.suffix == ".json":
        return isinstance(json.loads(content), dict)
    if path.suffix != ".safetensors":
        return True
    (folder / path.name).write_bytes(content)
    return bool(load_checkpoint(folder / path.name))


@pytest.mark.exhaustive
def test_after_a_power_failure_every_file_is_complete_and_the_newest_is_there(states, tmp_path):
    for safe, state in states:
        assert all(sound(path, content, tmp_path) for path, content in state.items())
        if safe:
            assert max(path for path in state if path.suffix == ".safetensors") >= safe[-1]


@pytest.mark.exhaustive
def test_after_a_power_failure_the_run_ends_with_the_same_weights(states, plain):
    for safe, state in states:
        with tempfile.TemporaryDirectory() as folder, inside(folder):
            restore(state, Path())
            if RUN / "model.safetensors" in safe:
                assert same_weights(weights(), plain[1])
            elif safe:
                assert run("train", "--resume", str(RUN)).status == 0
                assert same_weights(weights(), plain[1])
