"""A run that was saved is resumed with the same bits; its files are few, whole, and say what they hold."""

import dataclasses
import errno
import os
import signal
from functools import partial

import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.signals import STOPPING
from minitransformer.training import (
    AverageOfLast,
    Checkpointer,
    ExponentialAverage,
    Stopped,
    TrainingSettings,
    load_checkpoint,
    noam,
    read_run,
    save_checkpoint,
    train,
)
from minitransformer.training.checkpointer import newest_checkpoint, saved_steps
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

SIZES = {"vocab_size": 29, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}
SETTINGS = TrainingSettings(steps=9, batch_size=5, seed=3)
AVERAGES = {
    "of the last": lambda: AverageOfLast(9, interval=1),
    "none": lambda: None,
    "exponential": lambda: ExponentialAverage(0.9),
}


def make_model(dropout=0.1):
    return Transformer(TransformerConfig(dropout=dropout, **SIZES), seed=0)


def run_training(model, **options):
    """`train` on the copy task, with the paper's schedule."""
    schedule = partial(noam, d_model=12, warmup=4)
    return train(model, get_task("copy"), schedule=schedule, **{"settings": SETTINGS, **options})


def stopped_run(folder, step, averaging=None):
    """Train until `step`, and stop there as at a signal -> the path of the checkpoint."""
    checkpointer = Checkpointer(folder, interval=3)

    def stop(now, history):
        checkpointer.stop_requested = now >= step

    with pytest.raises(Stopped, match=f"stopped after step {step}, saved") as stopped:
        run_training(make_model(), averaging=averaging, evaluate=stop, checkpointer=checkpointer)
    return stopped.value.path


@pytest.mark.parametrize("step", [1, 4, 8])
@pytest.mark.parametrize("average", AVERAGES)
def test_run_that_was_stopped_is_resumed_with_the_same_bits(step, average, tmp_path):
    whole_model = make_model()
    whole = run_training(whole_model, averaging=AVERAGES[average]())
    saved = read_run(stopped_run(tmp_path / "run", step, AVERAGES[average]()))
    assert saved.step == step
    history = run_training(saved.model, averaging=AVERAGES[average](), resume=saved.state)
    assert history.losses == whole.losses
    assert history.norms == whole.norms
    assert history.learning_rates == whole.learning_rates
    assert history.accuracies == whole.accuracies
    assert history.tokens == whole.tokens
    for name, array in whole_model.state_dict().items():
        assert same(saved.model.state_dict()[name], array), name


def test_checkpoints_are_saved_at_intervals_and_the_newest_stay(tmp_path):
    run_training(make_model(), checkpointer=Checkpointer(tmp_path, interval=2, keep=3))
    assert [path.name for path in saved_steps(tmp_path)] == [f"step-{n:08d}.safetensors" for n in (6, 8, 9)]
    assert newest_checkpoint(tmp_path).name == "step-00000009.safetensors"


def test_later_checkpoints_are_deleted_when_a_run_that_was_resumed_from_an_earlier_one_is_saved(tmp_path):
    run_training(make_model(), checkpointer=Checkpointer(tmp_path, interval=2, keep=3))
    saved = read_run(saved_steps(tmp_path)[0])
    checkpointer = Checkpointer(tmp_path, interval=1, keep=3)

    def stop(step, history):
        checkpointer.stop_requested = True

    with pytest.raises(Stopped, match="stopped after step 7"):
        run_training(saved.model, resume=saved.state, evaluate=stop, checkpointer=checkpointer)
    assert [path.name for path in saved_steps(tmp_path)] == [f"step-{n:08d}.safetensors" for n in (6, 7)]


def test_older_checkpoints_stay_if_a_newer_one_is_not_flushed_to_the_disk(tmp_path, monkeypatch):
    flushed = []

    def fsync(descriptor):
        flushed.append(descriptor)
        if len(flushed) == 5:  # after the bytes and the names of the first two, the bytes of the third
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    checkpointer = Checkpointer(tmp_path, interval=1, keep=1)
    with pytest.raises(OSError, match=r"^cannot write .*/step-00000003.safetensors: Input/output error$"):
        run_training(make_model(), checkpointer=checkpointer)
    (path,) = tmp_path.iterdir()
    assert path == checkpointer.newest
    assert read_run(path).step == 2


def test_older_checkpoint_that_cannot_be_deleted_ends_the_training_after_a_newer_one_is_saved(tmp_path, monkeypatch):
    def unlink(path, missing_ok=False):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("pathlib.Path.unlink", unlink)
    checkpointer = Checkpointer(tmp_path, interval=1, keep=1)
    with pytest.raises(OSError, match=r"^cannot delete .*/step-00000001.safetensors: Input/output error$"):
        run_training(make_model(), checkpointer=checkpointer)
    assert read_run(checkpointer.newest).step == 2


def test_the_last_step_is_saved_so_that_training_can_go_on_from_there(tmp_path):
    longer, whole = dataclasses.replace(SETTINGS, steps=13), make_model()
    expected = run_training(whole, settings=longer, averaging=AverageOfLast(13, interval=1))
    averaging = AverageOfLast(9, interval=1)
    run_training(make_model(), averaging=averaging, checkpointer=Checkpointer(tmp_path, interval=100))
    assert [path.name for path in saved_steps(tmp_path)] == ["step-00000009.safetensors"]
    saved = read_run(newest_checkpoint(tmp_path))
    average = AverageOfLast(13, interval=1)
    history = run_training(saved.model, settings=longer, averaging=average, resume=saved.state)
    assert history.losses == expected.losses
    for name, array in whole.state_dict().items():
        assert same(saved.model.state_dict()[name], array), name


def test_checkpoint_of_a_run_is_a_model_like_any_other(tmp_path):
    model, metadata = load_checkpoint(stopped_run(tmp_path, 4))
    assert metadata["training"]["step"] == 4
    assert model.state_dict().keys() == make_model().state_dict().keys()


def test_what_is_said_about_the_run_is_saved_with_it(tmp_path):
    evaluations = []
    checkpointer = Checkpointer(tmp_path, interval=2, about={"evaluations": evaluations})
    run_training(make_model(), evaluate=lambda step, _: evaluations.append(step), checkpointer=checkpointer)
    assert read_run(newest_checkpoint(tmp_path)).about == {"evaluations": list(range(1, 10))}


@pytest.mark.usefixtures("signals_of_a_terminal")
@pytest.mark.parametrize("number", [signal.SIGINT, *STOPPING])
@pytest.mark.parametrize("last", [5, 9])
def test_signal_stops_after_the_step_and_saves(last, number, tmp_path):
    before = signal.getsignal(number)

    def evaluate(step, history):
        if step == last:
            signal.raise_signal(number)

    with pytest.raises(Stopped, match=f"stopped after step {last}"):
        run_training(make_model(), evaluate=evaluate, checkpointer=Checkpointer(tmp_path, interval=100))
    assert signal.getsignal(number) is before
    assert newest_checkpoint(tmp_path).name == f"step-{last:08d}.safetensors"


def test_a_checkpointer_that_has_stopped_one_training_does_not_stop_the_next(tmp_path):
    checkpointer = Checkpointer(tmp_path, interval=100)
    checkpointer.stop_requested = True
    with pytest.raises(Stopped):
        run_training(make_model(), checkpointer=checkpointer)
    run_training(make_model(), checkpointer=checkpointer)
    assert newest_checkpoint(tmp_path).name == "step-00000009.safetensors"


def ctrl_c_twice(step, history):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("signals_of_a_terminal")
def test_second_ctrl_c_ends_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_training(make_model(), evaluate=ctrl_c_twice, checkpointer=Checkpointer(tmp_path, interval=100))


@pytest.mark.usefixtures("signals_of_a_terminal")
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows hangs up by ending the process")
def test_a_terminal_that_hangs_up_twice_stops_after_the_step_and_saves(tmp_path):
    def evaluate(step, history):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)

    with pytest.raises(Stopped):
        run_training(make_model(), evaluate=evaluate, checkpointer=Checkpointer(tmp_path, interval=100))
    assert newest_checkpoint(tmp_path) is not None


@pytest.mark.usefixtures("signals_of_a_terminal")
def test_ctrl_c_stays_ignored_in_the_background(tmp_path):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as after `nohup` and `&`
    run_training(make_model(), evaluate=ctrl_c_twice, checkpointer=Checkpointer(tmp_path, interval=100))
    assert newest_checkpoint(tmp_path).name == "step-00000009.safetensors"


@pytest.mark.parametrize("name", ["interval", "keep"])
def test_checkpointer_refuses_counts_below_one(name, tmp_path):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        Checkpointer(tmp_path, **{"interval": 5, name: 0})


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is nothing to resume in"):
        newest_checkpoint(tmp_path)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, make_model())
    with pytest.raises(ValueError, match="there is nothing to resume"):
        read_run(path)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"training": 3, "about": {}}, "its training must be a JSON object"),
        ({"training": {"step": 3}}, "its about must be a JSON object"),
        ({"training": {"step": "3"}, "about": {}}, "does not say how many steps were taken"),
    ],
)
def test_state_that_is_no_state_is_refused_by_its_path(metadata, message, tmp_path):
    path = tmp_path / "step-00000003.safetensors"
    save_checkpoint(path, make_model(), **metadata)
    with pytest.raises(ValueError, match=message) as error:
        read_run(path)
    assert str(path) in str(error.value)
