"""The first layer that makes nan or infinity is named, with the operation and the causes that fit what was found."""

import inspect
import math
import re
from functools import partial

import numpy as np
import pytest

from minitransformer.core import Layer
from minitransformer.data import get_task
from minitransformer.data.text import TextBatch
from minitransformer.layers import Embedding, Linear, losses
from minitransformer.models import BERT, GPT, bert_config, gpt_config
from minitransformer.training import NotFiniteError, noam, train
from minitransformer.training.watching.anomaly_hooks import AnomalyFound, AnomalyHooks, named_layers
from tests.helpers import Trainer
from tests.training.spoiling import (
    EXPAND,
    RATE,
    SETTINGS,
    SIZES,
    V,
    even_small_parts,
    layer_of,
    lines_of,
    make_batch,
    make_model,
    make_trainer,
    refused_step,
    spoil,
)

pytestmark = pytest.mark.host_only  # a GPU does not tell which operation overflowed


@pytest.mark.parametrize("detect", [False, True])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "nan"), (-np.inf, "infinite")])
def test_weight_that_is_not_finite_is_named_and_nothing_moves(value, word, detect):
    trainer = make_trainer(detect=detect)
    trainer.step(make_batch(1), RATE)
    layer_of(trainer.model, EXPAND).W.data[3, 4] = value
    error = refused_step(trainer)
    assert error.layer == EXPAND
    assert lines_of(error)["first not finite"] == f"the weight {EXPAND}.W: 1 of 240 are {word}"
    assert "the step itself went too far" in lines_of(error)["likely causes"]


@pytest.mark.parametrize("detect", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@even_small_parts
def test_overflow_in_a_layer_names_it_and_its_operation(threads, detect):
    trainer = make_trainer(threads, detect)
    layer_of(trainer.model, EXPAND).W.data[...] = 2e38
    error = refused_step(trainer)
    assert error.layer == EXPAND
    lines = lines_of(error)
    assert lines["first not finite"].startswith(f"the output of {EXPAND} (Linear): ")
    assert re.fullmatch(
        r"overflow in minitransformer/functional/linear.py, line \d+: .* = rows @ W .*", lines["operation"]
    )
    assert lines["largest weights"] == f"2e+38, the weight {EXPAND}.W"
    assert "an overflow: the largest float32 is 3.4e+38" in str(error)
    assert lines["likely causes"].startswith("the initial weights"), "one step cannot have made them so large"


def test_what_goes_wrong_between_two_layers_is_that_of_the_layer_around_them():
    trainer = make_trainer()
    attention = layer_of(trainer.model, "decoder.layers.1.cross_attention.sublayer")
    attention.q.W.data *= 1e20
    attention.kv.W.data *= 1e20
    error = refused_step(trainer)
    assert error.layer == "decoder.layers.1.cross_attention.sublayer", "its output projection only got what was wrong"
    assert "functional/attention.py" in lines_of(error)["operation"]


class SpoiltBetween(Layer):
    """Two linear maps, between which backward makes nan."""

    def __init__(self):
        self.first, self.second = (Linear(3, 3, rng=np.random.default_rng(i)) for i in (1, 2))

    def forward(self, x, rng=None):
        h, cache = self.first.forward(x)
        y, second = self.second.forward(h)
        return y, (cache, second)

    def backward(self, dy, cache):
        return self.first.backward(self.second.backward(dy, cache[1]) * np.float32(np.nan), cache[0])


def test_what_backward_spoils_between_two_layers_is_that_of_the_layer_around_them():
    model = SpoiltBetween()
    with AnomalyHooks([model]):
        y, cache = model.forward(np.ones((2, 3), np.float32))
        with pytest.raises(AnomalyFound) as found:
            model.backward(y, cache)
    assert found.value.anomaly.kind == "SpoiltBetween"
    assert found.value.anomaly.what.endswith(" has for first (Linear)")


def with_nan(array):
    array = array.copy()
    array.flat[7] = np.nan
    return array


@pytest.mark.parametrize("detect", [False, True])
def test_backward_alone_that_makes_nan_is_named_with_its_file_and_line(detect, monkeypatch):
    trainer = make_trainer(detect=detect)
    name = "decoder.layers.0.cross_attention.norm"
    spoilt = spoil(monkeypatch, trainer, name, "backward", lambda dx, layer: with_nan(dx))
    error = refused_step(trainer)
    lines = lines_of(error)
    assert error.layer == name
    assert lines["first not finite"] == f"the gradient that {name} (LayerNorm) returns: 1 of 420 are nan"
    line = f"tests/training/spoiling.py, line {spoilt.__code__.co_firstlineno}: def spoilt("
    assert line in lines["operation"]
    assert "a mistake in backward of LayerNorm" in lines["likely causes"]
    assert "learning rate" not in str(error)
    assert layer_of(trainer.model, name).backward is spoilt, "it was restored"


def test_gradient_of_a_parameter_alone_is_named(monkeypatch):
    trainer = make_trainer()

    def change(dx, layer):
        layer.W.grad[2, 1] = np.nan
        return dx

    spoil(monkeypatch, trainer, EXPAND, "backward", change)
    error = refused_step(trainer)
    assert "the norm of the gradient is nan" in str(error)
    assert lines_of(error)["first not finite"] == f"the gradient of W in {EXPAND} (Linear): 1 of 240 are nan"


def test_gradient_that_no_layers_backward_returns_is_found_at_the_end(monkeypatch):
    trainer = make_trainer(positions="relative")
    table = "encoder.positions.table"
    positions = layer_of(trainer.model, "encoder.positions")

    def bias_backward(dbias, T, S, start=0):
        positions.table.grad[0, 0] = np.inf

    monkeypatch.setattr(positions, "bias_backward", bias_backward)
    error = refused_step(trainer)
    assert error.layer == "encoder.positions"
    assert lines_of(error)["first not finite"] == f"the gradient of {table}: 1 of 64 are infinite"


def test_finite_gradient_whose_norm_overflows_stops_the_step(monkeypatch):
    trainer = make_trainer()

    def change(dx, layer):
        layer.W.grad[2, 1] = 1e30
        return dx

    spoil(monkeypatch, trainer, EXPAND, "backward", change)
    error = refused_step(trainer)
    assert lines_of(error)["first not finite"] == "the norm of the gradient, whose numbers are finite: it is inf"
    assert lines_of(error)["largest gradients"].startswith("1e+30, the gradient of W")
    assert "squares overflow above 1.8e+19" in lines_of(error)["likely causes"]


def careless_cross_entropy(logits, targets, smoothing, pad, overwrite):
    """As a beginner writes it: the loss is infinite, and its gradient is not."""
    loss, cache = PLAIN_CROSS_ENTROPY(logits, targets, smoothing, pad, overwrite)
    return loss - np.log(np.float32(0.0) * loss), cache


PLAIN_CROSS_ENTROPY = losses.cross_entropy


@pytest.mark.parametrize("detect", [False, True])
def test_logarithm_of_zero_in_the_loss_is_named_with_its_line(detect, monkeypatch):
    monkeypatch.setattr(losses, "cross_entropy", careless_cross_entropy)
    error = refused_step(make_trainer(detect=detect))
    source, first = inspect.getsourcelines(careless_cross_entropy)
    line = first + next(i for i, text in enumerate(source) if "np.log" in text)
    lines = lines_of(error)
    assert str(error).startswith("step 1: the loss is inf; ")
    assert lines["first not finite"] == "the loss, of logits that are finite: it is inf"
    assert lines["operation"].startswith(
        f"divide by zero in tests/training/test_anomaly_hooks.py, line {line}: return loss"
    )
    assert "a logarithm of 0, and label smoothing needs that of every token" in lines["likely causes"]


def careless_softmax(scores, allowed=None, overwrite=False):
    """Without the case of a row in which nothing is allowed."""
    scores = np.where(allowed, scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p, p


def test_mask_that_lets_a_query_attend_to_nothing_is_among_the_causes(monkeypatch):
    monkeypatch.setattr("minitransformer.functional.attention.softmax", careless_softmax)
    batch = make_batch()
    batch.source[2] = 0  # padding alone
    error = refused_step(make_trainer(), batch)
    assert error.layer == "encoder.layers.0.self_attention.sublayer"
    assert "a mask: where a query may attend to nothing" in lines_of(error)["likely causes"]
    assert "tests/training/test_anomaly_hooks.py" in lines_of(error)["operation"]
    assert "learning rate" not in str(error)


def test_huge_learning_rate_ends_a_real_run_with_its_causes():
    model = make_model()
    with pytest.raises(NotFiniteError, match=r"\n  likely causes +the learning rate, .*: too large, or the warm-up"):
        train(model, get_task("copy"), schedule=partial(noam, d_model=12, warmup=4, factor=1e12), settings=SETTINGS)
    assert all(np.isfinite(weight).all() for weight in model.state_dict().values())


@pytest.mark.parametrize("detect", [False, True])
@even_small_parts
def test_fault_in_the_part_of_another_thread_is_found(detect, monkeypatch):
    plain = Embedding.forward

    def forward(self, ids, rng=None):
        y, cache = plain(self, ids, rng)
        y[ids == V - 1] = np.inf
        return y, cache

    monkeypatch.setattr(Embedding, "forward", forward)
    batch = make_batch()
    batch.target_in[-1, 2] = V - 1  # in the last thread's part, and nowhere else
    error = refused_step(make_trainer(3, detect), batch)
    assert error.layer == "target_embedding.tokens"
    assert "12 of 120 are infinite" in str(error)


@pytest.mark.parametrize("kind", [GPT, BERT])
def test_every_model_can_have_hooks(kind):
    config = (gpt_config if kind is GPT else bert_config)(**SIZES, dropout=0.1)
    batch = TextBatch(make_batch().target_in, make_batch().target_out)
    plain, hooked = (Trainer(kind(config), seed=1, threads=1, detect_anomaly=detect) for detect in (False, True))
    for _ in range(2):
        assert plain.step(batch, RATE)[0] == hooked.step(batch, RATE)[0]
    name = "encoder" if kind is BERT else "blocks"
    layer_of(hooked.model, f"{name}.layers.1.feed_forward.norm").gamma.data[2] = np.nan
    assert refused_step(hooked, batch).layer == f"{name}.layers.1.feed_forward.norm"


def test_layers_are_left_as_they_were():
    trainer = make_trainer()
    layer_of(trainer.model, EXPAND).W.data[0, 0] = np.nan
    refused_step(trainer)
    for name, layer in named_layers(trainer.model):
        assert not {"forward", "backward"} & vars(layer).keys(), name
    with AnomalyHooks([make_model()]) as hooks:
        assert all({"forward", "backward"} <= vars(layer).keys() for _, layer in named_layers(hooks.models[0]))


def test_overflow_that_does_no_harm_is_forgiven_and_not_taken_for_the_fault(monkeypatch):
    trainer = make_trainer(detect=True)

    def harmless(result, layer):
        huge = np.exp(np.full(3, 1000.0, np.float32))
        return result[0] + np.float32(1.0 / huge[0]), result[1]

    spoil(monkeypatch, trainer, "source_embedding.tokens", "forward", harmless)
    loss, _ = trainer.step(make_batch(), RATE)
    assert math.isfinite(loss)
    layer_of(trainer.model, EXPAND).W.data *= 1e38
    assert "rows @ W" in lines_of(refused_step(trainer))["operation"]
