"""Calling the command line in this process."""

import contextlib
import io
import signal
from typing import NamedTuple

import pytest

from minitransformer.cli import main
from minitransformer.training.run import TrainingRun
from tests.drawing import leave_undrawn

COPY = (
    "copy",
    "--steps",
    6,
    "--cooldown",
    0,
    "--batch-size",
    4,
    "--dropout",
    0.1,
    "--name",
    "copy",
)  # the runs of conftest.py


class Outcome(NamedTuple):
    """What a user sees of one command."""

    status: int
    out: str
    err: str


def run(capsys, *arguments):
    """`minitransformer *arguments` -> Outcome."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_by_argparse:
        status = exit_by_argparse.code
    return Outcome(status, *capsys.readouterr())


def assert_refused(outcome, *parts):
    """Bad input: status 2 and one line on stderr that has all `parts`, nothing of a traceback, nothing on stdout."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("minitransformer ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    for part in parts:
        assert part in outcome.err


def ctrl_c(seconds):
    """Instead of `time.sleep`: the user who ends a command that waits."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def stopping_after(step):
    """Inside a `with` block SIGTERM comes in this step."""
    log = TrainingRun.log

    def log_and_stop(self, *numbers):
        log(self, *numbers)
        if self.step == step:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingRun, "log", log_and_stop)
        yield


def train_once(folder, *arguments, stop=None):
    """Train in `folder`, for a fixture that several tests share, without figures and output -> exit status."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.chdir(folder)
        patch.setattr("minitransformer.recipes.toy.TESTED", 20)
        leave_undrawn(patch)
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            stack.enter_context(redirect(io.StringIO()))
        if stop:
            stack.enter_context(stopping_after(stop))
        return main(["train", *map(str, arguments)])
