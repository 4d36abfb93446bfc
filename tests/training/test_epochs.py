"""A run on sentence pairs that is stopped or dies anywhere in an epoch, and is resumed, has the bits of a whole one."""

import functools
from unittest import mock

import numpy as np
import pytest

from minitransformer.data import PairCorpus, TranslationTask
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import (
    AverageOfLast,
    Checkpointer,
    Stopped,
    TrainingSettings,
    noam,
    read_run,
    train,
)
from minitransformer.training.checkpointer import newest_checkpoint
from minitransformer.training.parallel import threads as parallel
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

LENGTH = 7  # batches in an epoch
STEPS = 2 * LENGTH + 3
SETTINGS = TrainingSettings(steps=STEPS, batch_size=50, seed=3)
LETTERS = "abcdefg"
even_small_parts = mock.patch.object(parallel, "MIN_NUMBERS", 1)


class Crashed(Exception):
    """The process has died, as far as a test can show that."""


@functools.cache
def make_task():
    """Words, and the same words backwards."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list(LETTERS), rng.integers(1, 9))) for _ in range(50)]
    pairs = [(word, word[::-1]) for word in words]
    return TranslationTask(PairCorpus(pairs, pairs[:1], pairs[1:2]), CharacterTokenizer(LETTERS), max_len=16)


def make_model(recurrent=False):
    if recurrent:
        config = Seq2SeqConfig(vocab_size=10, d_model=6, hidden_size=7, dropout=0.2, max_len=16)
        return Seq2Seq(config, seed=0)
    sizes = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}
    return Transformer(TransformerConfig(vocab_size=10, dropout=0.2, **sizes), seed=0)


def run_training(model, threads=1, **options):
    averaging = AverageOfLast(STEPS, interval=1)
    schedule = functools.partial(noam, d_model=12, warmup=4)
    return train(
        model, make_task(), schedule=schedule, settings=SETTINGS, averaging=averaging, num_threads=threads, **options
    )


def stopped_run(model, folder, step, **options):
    """Train until `step`, and stop there as at a signal -> what was saved."""
    checkpointer = Checkpointer(folder, interval=100)

    def stop(now, history):
        checkpointer.stop_requested = now >= step

    with pytest.raises(Stopped, match=f"stopped after step {step}, saved") as stopped:
        run_training(model, evaluate=stop, checkpointer=checkpointer, **options)
    return read_run(stopped.value.path)


@functools.cache
def whole_run(threads=1, recurrent=False):
    """A run that nothing interrupts -> (model, history)."""
    model = make_model(recurrent)
    return model, run_training(model, threads)


def assert_equal_to_whole(model, history, *options):
    expected_model, expected = whole_run(*options)
    for name in ("losses", "norms", "learning_rates", "accuracies", "tokens"):
        assert getattr(history, name) == getattr(expected, name), name
    for name, array in expected_model.state_dict().items():
        assert same(model.state_dict()[name], array), name


def test_an_epoch_has_so_many_batches():
    """The steps in the tests below are chosen by this number."""
    assert len(list(make_task().epoch(np.random.default_rng(0), SETTINGS.batch_size))) == LENGTH


@even_small_parts
@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
@pytest.mark.parametrize("step", [1, LENGTH - 1, LENGTH, LENGTH + 1, 2 * LENGTH, STEPS - 1])
def test_stopped_run_is_resumed_with_the_same_bits(step, threads, tmp_path):
    saved = stopped_run(make_model(), tmp_path, step, threads=threads)
    history = run_training(saved.model, None, resume=saved.state)
    assert_equal_to_whole(saved.model, history, threads)


@even_small_parts
def test_two_threads_draw_other_masks_than_one():
    assert whole_run(1)[1].losses != whole_run(2)[1].losses, "the second thread has had a part"


def test_recurrent_model_is_resumed_with_the_same_bits(tmp_path):
    saved = stopped_run(make_model(recurrent=True), tmp_path, LENGTH + 2)
    assert_equal_to_whole(saved.model, run_training(saved.model, resume=saved.state), 1, True)


def test_run_that_is_stopped_again_and_again_has_the_same_bits(tmp_path):
    saved = stopped_run(make_model(), tmp_path, 2)
    for step in (3, LENGTH, LENGTH + 1, 2 * LENGTH + 2):
        saved = stopped_run(saved.model, tmp_path, step, resume=saved.state)
    assert_equal_to_whole(saved.model, run_training(saved.model, resume=saved.state))


@pytest.mark.parametrize("interval", [4, LENGTH])
def test_run_that_dies_is_resumed_from_its_last_checkpoint_with_the_same_bits(interval, tmp_path):
    def die(step, history):
        if step == LENGTH + 3:
            raise Crashed

    with pytest.raises(Crashed):
        run_training(make_model(), evaluate=die, checkpointer=Checkpointer(tmp_path, interval=interval))
    saved = read_run(newest_checkpoint(tmp_path))
    assert saved.step == (LENGTH + 2) // interval * interval
    assert_equal_to_whole(saved.model, run_training(saved.model, resume=saved.state))


def test_state_of_a_run_without_epochs_is_refused_by_a_run_with_epochs(tmp_path):
    arrays, facts = stopped_run(make_model(), tmp_path, 2).state
    del facts["position"]
    with pytest.raises(ValueError, match=r"^this run cannot be resumed: it has no 'position'$"):
        run_training(make_model(), resume=(arrays, facts))


@pytest.mark.parametrize("position", [-1, "2", None])
def test_impossible_position_is_refused(position, tmp_path):
    arrays, facts = stopped_run(make_model(), tmp_path, 2).state
    with pytest.raises(ValueError, match=r"^this run cannot be resumed: position must be "):
        run_training(make_model(), resume=(arrays, {**facts, "position": position}))
