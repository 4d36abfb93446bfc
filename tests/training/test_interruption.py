"""Ctrl-C in a training without a Checkpointer ends it after a whole step, and other interruptions leave a whole step or
are known to the optimizer."""

import gc
import hashlib
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam, AverageOfLast, ExponentialAverage, TrainingSettings, optimizers, train
from minitransformer.training.run import TrainingRun
from tests.helpers import same

pytestmark = [
    pytest.mark.host_only,  # CuPy's generators cannot be saved
    pytest.mark.usefixtures("signals_of_a_terminal"),
]

STEPS = 15
SIZES = {"vocab_size": 29, "d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_len": 16}
AVERAGES = {"of the last": lambda: AverageOfLast(STEPS, interval=1), "exponential": lambda: ExponentialAverage(0.9)}


class Watched(TrainingRun):
    """A run that tells its training, which is the averaging's `training`, about itself and its steps."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        training = self.plan.averaging.training
        training.run = self
        training.after.append(fingerprint(self))

    def log(self, *measured):
        super().log(*measured)
        if self.plan.averaging.training.record:
            self.plan.averaging.training.after.append(fingerprint(self))


class Training:
    """A training of STEPS steps that keeps its run, and `after[step]`, a hash of everything that the next step uses."""

    def __init__(self, average="of the last", threads=1):
        self.model = Transformer(TransformerConfig(dropout=0.1, **SIZES), seed=0)
        self.optimizer = Adam(self.model.parameters(), weight_decay=0.01)
        self.options = {"num_threads": threads, "settings": TrainingSettings(steps=STEPS, batch_size=8, seed=3)}
        self.average, self.run, self.after, self.record = AVERAGES[average], None, [], False

    def go(self, evaluate=None, resume=None, record=False):
        """Train, from the beginning or from the state of a run."""
        self.record, averaging = record, self.average()
        averaging.training = self
        options = {**self.options, "averaging": averaging, "evaluate": evaluate, "resume": resume}
        with mock.patch("minitransformer.training.run.TrainingRun", Watched):
            return train(self.model, get_task("copy"), self.optimizer, lambda step: 1e-3 / step, **options)


def fingerprint(run):
    """A hash of the weights, and of all of the run's state except for the time it took."""
    arrays, facts = run.state()
    digest = hashlib.sha256(repr({**facts, "seconds": 0}).encode())
    for name, array in sorted({**arrays, **run.model.state_dict()}.items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def from_a_thread(seconds):
    """Send Ctrl-C to this process after some seconds, from a thread of its own -> a function that waits for it."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.start()
    return timer.join


def from_outside(seconds):
    """The same from another process."""
    code = f"import os, time; time.sleep({seconds}); os.kill(os.getppid(), {int(signal.SIGINT)})"
    return subprocess.Popen([sys.executable, "-S", "-c", code]).wait


def interrupted(training, send, seconds):
    """Train with a Ctrl-C after some seconds -> whether it came while the training ran."""
    wait = ended = None
    gc.disable()  # Hypothesis has a callback there, and Python ignores what is raised in one
    try:
        wait = send(seconds)
        training.go()
        ended = True
        wait()
        time.sleep(0.1)  # it comes after the end
    except KeyboardInterrupt:
        if wait:
            wait()
    finally:
        gc.enable()
    return training.run is not None and not ended


@pytest.mark.parametrize(
    ("average", "threads", "send", "count"),
    [
        ("of the last", 1, from_a_thread, 3),
        ("exponential", 2, from_a_thread, 3),
        pytest.param("of the last", 1, from_outside, 10, marks=pytest.mark.exhaustive),
    ],
)
def test_ctrl_c_at_any_moment_leaves_the_state_after_a_whole_step(average, threads, send, count, record_property):
    whole, rng, steps, parted = Training(average, threads), np.random.default_rng(0), [], 0
    history = whole.go(record=True)
    start = 0.15 if send is from_outside else 0.0  # until the other process sleeps
    while len(steps) < count:
        training = Training(average, threads)
        if not interrupted(training, send, start * rng.random() + rng.uniform(0.0, 0.8 * history.seconds)):
            continue
        run, done = training.run, training.run.step
        steps.append(done)
        assert len(run.history.losses) == len(run.history.norms) == done
        if run.is_done:  # it came in the last step, and the average is in the model
            assert same(training.optimizer.weights, whole.optimizer.weights)
            continue
        assert fingerprint(run) == whole.after[done]
        parted += 1
        resumed = training.go(resume=run.state())
        assert resumed.losses == history.losses
        assert same(training.optimizer.weights, whole.optimizer.weights)
    record_property("interrupted after the steps", steps)
    assert parted
    assert len(set(steps)) > 1


def ctrl_c(step, history):
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_the_last_step_leaves_a_finished_model():
    whole, training = Training(), Training()
    whole.go()
    with pytest.raises(KeyboardInterrupt):
        training.go(evaluate=lambda step, history: step < STEPS or ctrl_c(step, history))
    assert same(training.optimizer.weights, whole.optimizer.weights)


class Broken(Exception):
    """Something went wrong."""


def fail(*arguments, **options):
    raise Broken


def test_second_ctrl_c_ends_a_step_that_does_not_end(monkeypatch):
    training, before = Training(), signal.getsignal(signal.SIGINT)

    def hang(*arguments):
        ctrl_c(0, None)
        ctrl_c(0, None)
        pytest.fail("the second Ctrl-C must end the step")

    monkeypatch.setattr(training.model, "features_backward", hang)
    with pytest.raises(KeyboardInterrupt):
        training.go()
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    assert len(training.go().losses) == STEPS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handler_of_the_caller_is_called_between_two_steps_each_time_and_stays(number):
    training, calls = Training(), []

    def handler(received, frame):
        calls.append((received, training.run.step, len(training.run.history.losses), training.optimizer.t))

    before = signal.signal(number, handler)
    try:
        training.options["settings"] = TrainingSettings(steps=6, batch_size=8, eval_interval=2)
        task = get_task("copy")
        batch = task.batch

        def noisy(rng, size):
            if training.optimizer.t % 2 == 0:
                signal.raise_signal(number)
            return batch(rng, size)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(task), "batch", lambda self, rng, size: noisy(rng, size))
            assert len(training.go().losses) == 6
        assert calls == [(number, t, t, t) for t in (1, 3, 5)]
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_signal_that_never_reaches_python_is_left_alone():
    training, seen, handler = Training(), [], signal.SIG_IGN
    signal.signal(signal.SIGINT, handler)
    training.go(evaluate=lambda step, history: seen.append(signal.getsignal(signal.SIGINT)))
    assert set(seen) == {handler}


def test_training_in_another_thread_leaves_the_handlers_alone():
    training, seen = Training(), []
    evaluate = lambda step, history: seen.append(signal.getsignal(signal.SIGINT))  # noqa: E731
    thread = threading.Thread(target=training.go, args=(evaluate,))
    thread.start()
    thread.join(20)
    assert seen == [signal.default_int_handler] * STEPS


def test_ctrl_c_during_another_error_does_not_hide_it():
    def evaluate(step, history):
        ctrl_c(step, history)
        raise Broken

    with pytest.raises(Broken):
        Training().go(evaluate)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_error_in_backward_leaves_the_last_step_and_training_can_go_on(monkeypatch):
    training, whole = Training(), Training()
    for each in (training, whole):
        each.go()
    before = fingerprint(training.run), training.optimizer.t
    monkeypatch.setattr(Transformer, "features_backward", fail)
    with pytest.raises(Broken):
        training.go()
    assert training.optimizer.t == before[1]
    assert same(training.optimizer.weights, whole.optimizer.weights)
    assert same(training.optimizer.m, whole.optimizer.m)
    monkeypatch.undo()
    for each in (training, whole):
        each.go()
    assert same(training.optimizer.weights, whole.optimizer.weights)


def test_step_that_was_left_while_it_moved_the_weights_is_not_counted_and_the_next_one_is_refused(monkeypatch):
    training, update, blocks = Training(), optimizers._adam_update, []

    def fail_in_the_second_block(*arguments, **options):
        blocks.append(0)
        if len(blocks) == 2:
            raise KeyboardInterrupt
        update(*arguments, **options)

    monkeypatch.setattr(optimizers, "_adam_update", fail_in_the_second_block)
    monkeypatch.setattr(optimizers, "BLOCK", 100)
    with pytest.raises(KeyboardInterrupt):
        training.go()
    assert training.optimizer.t == 0
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="the last step was interrupted while it moved the weights"):
        training.go()
    whole = Training()
    training.model.load_state_dict(whole.model.state_dict())
    training.optimizer.load_state(*whole.optimizer.state())
    training.go()
    whole.go()
    assert same(training.optimizer.weights, whole.optimizer.weights)


def test_average_that_could_not_be_updated_has_not_counted_the_weights():
    average = ExponentialAverage(0.9)
    average.update(1, np.ones(3))
    before = average.value()
    with pytest.raises(ValueError, match="broadcast"):
        average.update(2, np.ones(4))
    assert same(average.value(), before)
