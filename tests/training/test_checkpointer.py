"""A run that was saved is resumed with the same bits; its files are few, whole, and say what they hold."""

import dataclasses
import functools
import signal
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from minitransformer.data import PairCorpus, TranslationTask, get_task
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.system.signals import STOPPING
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import (
    AverageOfLast,
    Checkpointer,
    ExponentialAverage,
    Stopped,
    TrainingSettings,
    noam,
    read_run,
    save_checkpoint,
    train,
)
from minitransformer.training.parallel import threads
from minitransformer.training.saving.checkpointer import newest_checkpoint, saved_steps
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

SIZES = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16, "dropout": 0.1}
SETTINGS = TrainingSettings(steps=9, batch_size=5, seed=3)
LENGTH = 7  # batches in an epoch of `words`


def make_model():
    return Transformer(TransformerConfig(vocab_size=29, **SIZES), seed=0)


def recurrent():
    config = Seq2SeqConfig(vocab_size=10, d_model=6, hidden_size=7, dropout=0.2, max_len=16)
    return Seq2Seq(config, seed=0)


@functools.cache
def words():
    """Words, and the same words backwards."""
    rng, letters = np.random.default_rng(0), "abcdefg"
    spelled = ["".join(rng.choice(list(letters), rng.integers(1, 9))) for _ in range(50)]
    pairs = [(word, word[::-1]) for word in spelled]
    return TranslationTask(PairCorpus(pairs, pairs[:1], pairs[1:2]), CharacterTokenizer(letters), max_len=16)


class Way(NamedTuple):
    """How a run is trained."""

    average: Callable = lambda: None
    data: Callable = lambda: get_task("copy")
    model: Callable = make_model
    threads: int = 1
    settings: TrainingSettings = SETTINGS


EPOCHS = dataclasses.replace(SETTINGS, batch_size=50)  # tokens
WAYS = {  # how it is trained, and the steps after which it is stopped
    "as usual": (Way(), (4,)),
    "with an average of the last weights": (Way(lambda: AverageOfLast(9, interval=1)), (1, 8)),
    "with an exponential average, in micro batches and threads": (
        Way(
            lambda: ExponentialAverage(0.9),
            threads=2,
            settings=dataclasses.replace(SETTINGS, grad_accumulation_steps=2),
        ),
        (5,),
    ),
    "in parts of one length": (Way(settings=dataclasses.replace(SETTINGS, batch_size=80, steps=4)), (1,)),
    "in epochs, before, at and after the end of one": (
        Way(data=words, settings=EPOCHS),
        (LENGTH - 1, LENGTH, LENGTH + 1),
    ),
    "in epochs and threads": (Way(data=words, threads=2, settings=EPOCHS), (LENGTH + 1,)),
    "recurrent": (Way(data=words, model=recurrent, settings=EPOCHS), (3, LENGTH)),
}
EVERY_HISTORY = ("losses", "norms", "learning_rates", "accuracies", "tokens")


def run_training(model, way=WAYS["as usual"][0], **options):
    """`train`, with the paper's schedule."""
    options = {"settings": way.settings, "averaging": way.average(), "num_threads": way.threads, **options}
    return train(model, way.data(), schedule=partial(noam, d_model=12, warmup=4), **options)


def stopped_run(folder, step, way=WAYS["as usual"][0], model=None, **options):
    """Train until `step`, and stop there as at a signal -> the path of the checkpoint."""
    checkpointer = Checkpointer(folder, interval=3)

    def stop(now, history):
        checkpointer.stop_requested = now >= step

    with pytest.raises(Stopped, match=f"stopped after step {step}, saved") as stopped:
        run_training(model or way.model(), way, evaluate=stop, checkpointer=checkpointer, **options)
    return stopped.value.path


def assert_ends_as_whole(saved, way):
    """Resume a run -> the same history and weights as those of a run that nothing interrupted."""
    whole = way.model()
    expected = run_training(whole, way)
    history = run_training(saved.model, way, resume=saved.state)
    for name in EVERY_HISTORY:
        assert getattr(history, name) == getattr(expected, name), name
    for name, array in whole.state_dict().items():
        assert same(saved.model.state_dict()[name], array), name


@pytest.mark.parametrize(("way", "steps"), WAYS.values(), ids=WAYS)
@mock.patch.object(threads, "MIN_NUMBERS", 1)
def test_run_that_was_stopped_is_resumed_with_the_same_bits(way, steps, tmp_path):
    saved = read_run(stopped_run(tmp_path, steps[0], way))
    for step in steps[1:]:
        saved = read_run(stopped_run(tmp_path, step, way, saved.model, resume=saved.state))
    assert saved.step == steps[-1]
    assert_ends_as_whole(saved, way)


def test_an_epoch_has_as_many_batches_as_the_steps_are_chosen_by():
    assert len(list(words().epoch(np.random.default_rng(0), EPOCHS.batch_size))) == LENGTH


class Crashed(Exception):
    """The process has died, as far as a test can show that."""


def test_run_that_dies_is_resumed_from_its_last_checkpoint_with_the_same_bits(tmp_path):
    def die(step, history):
        if step == 6:
            raise Crashed

    way = WAYS["in epochs and threads"][0]
    with pytest.raises(Crashed):
        run_training(way.model(), way, evaluate=die, checkpointer=Checkpointer(tmp_path, interval=4))
    saved = read_run(newest_checkpoint(tmp_path))
    assert saved.step == 4
    assert_ends_as_whole(saved, way)


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


def test_what_is_said_about_the_run_is_saved_with_it(tmp_path):
    evaluations = []
    checkpointer = Checkpointer(tmp_path, interval=2, about={"evaluations": evaluations})
    run_training(make_model(), evaluate=lambda step, _: evaluations.append(step), checkpointer=checkpointer)
    assert read_run(newest_checkpoint(tmp_path)).about == {"evaluations": list(range(1, 10))}


@pytest.mark.usefixtures("signals_of_a_terminal")
@pytest.mark.parametrize(("number", "last"), [(signal.SIGINT, 9), *((number, 5) for number in STOPPING)])
def test_signal_stops_after_the_step_and_saves(number, last, tmp_path):
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
