"""A small trainer whose layers can be spoilt, and a step that must then be refused."""

from unittest import mock

import numpy as np
import pytest

from minitransformer.data import Batch
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import NotFiniteError, TrainingSettings
from minitransformer.training.parallel import threads as parallel
from minitransformer.training.watching.anomaly_hooks import named_layers
from tests.helpers import Trainer, randomize, same

V, B, S, T = 29, 7, 6, 5
SIZES = {"vocab_size": V, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 2, "max_len": 16}
SETTINGS = TrainingSettings(steps=30, batch_size=5, seed=3)
RATE = 1e-3
EXPAND = "encoder.layers.1.feed_forward.sublayer.expand"

even_small_parts = mock.patch.object(parallel, "MIN_NUMBERS", 1)


def make_model(**changes):
    return randomize(Transformer(TransformerConfig(**{"dropout": 0.1, **SIZES, **changes})), scale=0.3)


def make_batch(seed=0):
    rng = np.random.default_rng(seed)
    return Batch(*(rng.integers(3, V - 1, shape) for shape in ((B, S), (B, T), (B, T))))


def layer_of(model, name):
    return dict(named_layers(model))[name]


def make_trainer(threads=1, detect=False, **changes):
    return Trainer(make_model(**changes), seed=1, threads=threads, detect_anomaly=detect)


def refused_step(trainer, batch=None):
    """A step that must stop before it moves anything -> the error."""
    optimizer = trainer.optimizer
    weights, steps, moments = optimizer.weights.copy(), optimizer.t, (optimizer.m.copy(), optimizer.v.copy())
    with pytest.raises(NotFiniteError) as caught:
        trainer.step(batch or make_batch(), RATE)
    assert optimizer.weights.tobytes() == weights.tobytes(), "the weights were moved"
    assert optimizer.t == steps
    assert same(optimizer.m, moments[0])
    assert same(optimizer.v, moments[1])
    assert caught.value.step == steps + 1
    assert str(caught.value).startswith(f"step {steps + 1}: ")
    return caught.value


def lines_of(error):
    """The table under the headline -> {name: text}."""
    lines = [line for line in str(error).splitlines()[1:] if line[2] != " "]
    return {line[:22].strip(): line[23:] for line in lines}


def spoil(monkeypatch, trainer, name, method, change):
    """`change` is called with what this method of the layer returns, and the layer."""
    layer = layer_of(trainer.model, name)
    plain = getattr(layer, method)

    def spoilt(*inputs, **options):
        result = plain(*inputs, **options)
        return change(result, layer)

    monkeypatch.setattr(layer, method, spoilt, raising=False)
    return spoilt
