"""Recomputed layers: every bit that a layer computes, in less memory."""

import copy
import tracemalloc

import numpy as np
import pytest

from minitransformer.config import Experts
from minitransformer.data import Batch
from minitransformer.data.text import TextBatch
from minitransformer.layers import Recomputed, recomputed
from minitransformer.models import BERT, GPT, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig, gpt_config
from minitransformer.models.build import builder
from minitransformer.system.generators import make_generator
from minitransformer.training import Adam, CrossEntropyLoss, TrainingSettings, gradients_of, train
from minitransformer.training.parallel import threads as parallel
from tests.helpers import host, random_array, randomize, same

V, B, S, T = 19, 6, 7, 5
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 3, "max_len": 16}
DROPPED = {"dropout": 0.2, "attention_dropout": 0.3, "ffn_dropout": 0.1}
RNG = 5


def config(**changes):
    return TransformerConfig(V, **{**SIZES, **DROPPED, **changes})


MODELS = {
    "Transformer": (Transformer, config()),
    "BERT": (BERT, config(norm="pre")),
    "GPT of one layer used three times": (GPT, config(share_layers=True, positions="rope")),
    "GPT with experts": (GPT, config(experts=Experts(4, per_token=2, balance=0.3, z_loss=0.1))),
    "GPT whose router has a bias": (GPT, config(experts=Experts(4, scores="sigmoid", balance=0.3))),
    "GPT with linear attention": (GPT, config(attention="linear", attention_dropout=0.0)),
}


def batch_for(kind):
    rng = np.random.default_rng(2)
    source, target = rng.integers(3, V, (B, S)), rng.integers(3, V, (B, T))
    source[0, -2:] = target[1, -1:] = 0
    return Batch(source, target, np.roll(target, -1)) if kind is Transformer else TextBatch(target, np.roll(target, -1))


def build(name):
    kind, options = MODELS[name]
    return randomize(kind(options, dtype=np.float32), 3, 0.4)


def computed(change, name, weight=1.0):
    """-> the loss, all gradients, and where the generator stands afterwards, of change(model)."""
    model, rng = build(name), make_generator(RNG)
    loss = gradients_of(change(model), CrossEntropyLoss(0.1), rng)(batch_for(MODELS[name][0]), weight).loss
    return float(loss), {key: host(own.grad) for key, own in model.named_parameters()}, host(rng.integers(0, 2**32, 5))


@pytest.mark.host_only  # a GPU's generator gives a seed for the masks, so they are others
@pytest.mark.parametrize("name", MODELS)
def test_recomputed_layers_have_the_same_gradients_bit_by_bit(name):
    """With dropout, experts that are balanced, and a batch that is a third of a larger one."""
    (loss, expected, after), (found_loss, found, found_after) = (
        computed(change, name, 1 / 3) for change in (lambda model: model, recomputed)
    )
    assert found_loss == loss
    assert all(same(found[key], gradient) for key, gradient in expected.items())
    assert sum(np.abs(gradient).max() > 0 for gradient in expected.values()) > 8
    assert same(found_after, after)


def test_both_forward_passes_of_a_recomputed_layer_draw_the_same_masks():
    """By definition, on each device: the output is that of the inner layer under the generator that was kept."""
    layer = randomize(builder(config(), dtype=np.float64).decoder_layer())
    x, memory, dy = (random_array(np.random.default_rng(i), B, length, 12) for i, length in enumerate((T, S, T)))
    y, cache = Recomputed(layer).forward(x, memory, rng=make_generator(RNG))
    again, inner = layer.forward(x, memory, rng=cache.rng())
    assert same(y, again)
    assert not same(y, layer(x, memory))
    expected = layer.backward(dy, inner)
    for _ in range(2):  # backward may be called twice
        assert all(map(same, Recomputed(layer).backward(dy, cache), expected))


def test_a_recomputed_layer_keeps_nothing_but_its_inputs():
    layer = Recomputed(randomize(builder(config()).encoder_layer()))
    x = random_array(np.random.default_rng(0), B, T, 12, dtype=np.float32)
    _, cache = layer.forward(x, None, rng=make_generator(RNG))
    assert cache.inputs[0] is x
    assert cache.inputs[1:] == (None,)


def test_parameters_of_a_recomputed_layer_have_its_own_names():
    layer = builder(config()).encoder_layer()
    assert dict(Recomputed(layer).named_parameters()) == dict(layer.named_parameters())
    model = build("Transformer")
    before = copy.copy(model.as_built)
    twin = recomputed(model)
    assert dict(twin.named_parameters()) == dict(model.named_parameters())
    assert type(model.encoder.layers[0]) is not Recomputed
    assert model.as_built == before


class Words:
    def batch(self, rng, size):
        ids = rng.integers(3, V, (size, T + 1))
        return TextBatch(ids[:, :-1], ids[:, 1:])


def trained(recompute, threads, detect_anomaly=False):
    model = build("GPT with experts")
    settings = TrainingSettings(
        3, B, grad_accumulation_steps=2, recompute=recompute, detect_anomaly=detect_anomaly, seed=4
    )
    train(model, Words(), Adam(model.parameters()), settings=settings, num_threads=threads)
    return model.state_dict()


@pytest.mark.host_only
@pytest.mark.parametrize("threads", [1, 2])
def test_training_with_recompute_gives_the_same_weights_bit_by_bit(threads, monkeypatch):
    """In micro batches, by several threads, and with hooks on every layer."""
    monkeypatch.setattr(parallel, "MIN_NUMBERS", 1)
    again, original = [], Recomputed.backward
    monkeypatch.setattr(Recomputed, "backward", lambda self, *more: again.append(1) or original(self, *more))
    expected = trained(False, threads)
    assert not again
    assert all(map(same, trained(True, threads).values(), expected.values()))
    assert len(again) == 3 * 2 * threads * SIZES["num_layers"]  # steps, micro batches
    assert all(map(same, trained(True, threads, detect_anomaly=True).values(), expected.values()))
    start = build("GPT with experts").state_dict()
    assert not any(same(expected[name], start[name]) for name in start if name.endswith("W"))


@pytest.mark.host_only
def test_a_deep_model_needs_one_layers_caches_and_the_inputs_of_all():
    def peak(layers, change):
        model = GPT(gpt_config(V, **{**SIZES, "num_layers": layers, "max_len": 64}))
        gradients = gradients_of(change(model), CrossEntropyLoss())
        batch = TextBatch(*np.random.default_rng(1).integers(3, V, (2, B, 64)))
        gradients(batch)
        tracemalloc.start()
        gradients(batch)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    inputs = 4 * B * 64 * 12  # bytes of x
    kept = peak(12, lambda model: model) - peak(4, lambda model: model)
    assert kept > 8 * 20 * inputs
    assert peak(12, recomputed) - peak(4, recomputed) == pytest.approx(8 * inputs, rel=0.05)


def test_a_model_without_stacks_cannot_be_recomputed():
    with pytest.raises(ValueError, match="recompute needs a model with stacks of layers, and a Seq2Seq has none"):
        recomputed(Seq2Seq(Seq2SeqConfig(V, 8, 8)))
