"""A training that was put away goes on to the same bits; its files are few, whole, and say what they are."""

import signal

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Session, TrainingSettings, load_checkpoint, save_checkpoint, train
from minitransformer.training.checkpointer import Keeper, Stopped, newest, read_session, steps_in
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot say where they stand

SIZES = {"vocab_size": 29, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}
SETTINGS = {"steps": 9, "batch_size": 5, "warmup": 4, "seed": 3}


def make_model(dropout=0.1):
    return Transformer(TransformerConfig(dropout=dropout, **SIZES), seed=0)


class StopAfter:
    """Asks for a stop after a step, as a signal would."""

    def __init__(self, keeper, step):
        self.keeper, self.step = keeper, step

    def __call__(self, step, history):
        self.keeper.asked = step >= self.step


def stopped_training(tmp_path, settings, step):
    """Train until `step`, stop there -> the path of what was saved."""
    keeper = Keeper(tmp_path / "a.training", every=3)
    with pytest.raises(Stopped, match=f"stopped after step {step}, saved") as stopped:
        train(make_model(), get_task("copy"), settings, StopAfter(keeper, step), keeper)
    return stopped.value.path


@pytest.mark.parametrize("step", [1, 4, 8])
@pytest.mark.parametrize("averaging", [{"average_every": 1}, {"average_every": 0}, {"ema": 0.9}])
def test_training_that_was_stopped_goes_on_to_the_same_bits(step, averaging, tmp_path):
    settings = TrainingSettings(**SETTINGS, **averaging)
    whole_model = make_model()
    whole = train(whole_model, get_task("copy"), settings)
    model, arrays, facts, _ = read_session(stopped_training(tmp_path, settings, step))
    history = train(model, get_task("copy"), settings, begun=(arrays, facts))
    assert history.losses == whole.losses
    assert history.learning_rates == whole.learning_rates
    assert history.accuracies == whole.accuracies
    assert history.tokens == whole.tokens
    for name, array in whole_model.state_dict().items():
        assert same(model.state_dict()[name], array), name


def test_checkpoints_are_taken_on_the_way_and_the_newest_stay(tmp_path):
    train(make_model(), get_task("copy"), TrainingSettings(**SETTINGS), keeper=Keeper(tmp_path, every=2, keep=3))
    assert [path.name for path in steps_in(tmp_path)] == [f"step-{n:08d}.safetensors" for n in (4, 6, 8)]
    assert newest(tmp_path).name == "step-00000008.safetensors"


def test_checkpoint_of_a_training_is_a_model_like_any_other(tmp_path):
    path = stopped_training(tmp_path, TrainingSettings(**SETTINGS), 4)
    model, metadata = load_checkpoint(path)
    assert metadata["training"]["step"] == 4
    assert model.state_dict().keys() == make_model().state_dict().keys()


def test_what_is_known_of_the_training_is_kept_with_it(tmp_path):
    looks = []
    keeper = Keeper(tmp_path, every=2, about={"looks": looks})
    train(make_model(), get_task("copy"), TrainingSettings(**SETTINGS), lambda step, _: looks.append(step), keeper)
    assert read_session(newest(tmp_path))[3] == {"looks": list(range(1, 9))}


def test_session_says_when_it_is_done():
    session = Session(make_model(), get_task("copy"), TrainingSettings(**SETTINGS))
    while not session.is_done:
        session.advance()
    assert session.step == 9
    assert len(session.finish().losses) == 9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_after_the_step_and_saves(number, tmp_path):
    before = signal.getsignal(number)

    def watch(step, history):
        if step == 5:
            signal.raise_signal(number)

    keeper = Keeper(tmp_path, every=100)
    with pytest.raises(Stopped, match="stopped after step 5"):
        train(make_model(), get_task("copy"), TrainingSettings(**SETTINGS), watch, keeper)
    assert signal.getsignal(number) is before
    assert newest(tmp_path).name == "step-00000005.safetensors"


def test_second_ctrl_c_ends_at_once(tmp_path):
    def watch(step, history):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    keeper = Keeper(tmp_path, every=100)
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), get_task("copy"), TrainingSettings(**SETTINGS), watch, keeper)


@pytest.mark.parametrize("changes", [{"every": 0}, {"keep": 0}])
def test_keeper_refuses_what_means_nothing(changes, tmp_path):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        Keeper(tmp_path, **{"every": 5, **changes})


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is nothing to resume in"):
        newest(tmp_path)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, make_model())
    with pytest.raises(ValueError, match="there is nothing to resume"):
        read_session(path)


def test_state_holds_arrays_on_the_host_and_facts_for_json():
    session = Session(make_model(), get_task("copy"), TrainingSettings(**SETTINGS, ema=0.9))
    session.advance()
    arrays, facts = session.state()
    assert all(type(array) is np.ndarray for array in arrays.values())
    assert arrays["adam.m"].any()
    assert facts["step"] == 1
