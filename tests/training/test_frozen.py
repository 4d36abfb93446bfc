"""Frozen parameters: no gradient, no state, no move, and the gradient still passes to the input."""

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.data import TextBatch, get_task
from minitransformer.layers import CrossEntropyLoss, Linear
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.training import Adam, DataParallel, PlainGradients, training_step
from minitransformer.training.parallel.threads import replica
from minitransformer.training.step import step_with
from tests.helpers import device, host, randomize

SIZES = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 2, "max_len": 16, "dropout": 0.0}
FROZEN = ("source_embedding", "encoder.layers.0", "decoder.layers.1.cross_attention")


def make_model(**changes):
    model = Transformer(TransformerConfig(29, **{**SIZES, **changes}), seed=4, dtype=np.float64)
    randomize(model, scale=0.3)
    return model


def gradients(model, batch):
    """{name: gradient} of the plain loss."""
    model.zero_grad()
    loss_fn = CrossEntropyLoss(0.1)
    z, cache = model.forward(*batch.inputs)
    _, loss_cache = loss_fn.forward(z, batch.targets)
    model.backward(loss_fn.backward(1.0, loss_cache), cache)
    return {name: host(parameter.grad).copy() for name, parameter in model.named_parameters()}


TRAINED = {  # what is trained alone, and how many layers of each stack need a backward pass
    "GPT, last layer": (GPT, ("blocks.layers.1",), {"blocks": 1}),
    "BERT, part of the last layer": (BERT, ("encoder.layers.1.feed_forward", "head.transform"), {"encoder": 1}),
    "BERT, head": (BERT, ("head.transform",), {"encoder": 0}),
    "decoder": (Transformer, ("decoder.layers.1",), {"encoder": 0, "decoder": 1}),
    "encoder": (Transformer, ("encoder.layers.1",), {"encoder": 1, "decoder": 2}),
    "source": (Transformer, ("source_embedding.tokens",), {"encoder": 2, "decoder": 2}),
    "target": (Transformer, ("target_embedding.tokens",), {"encoder": 0, "decoder": 2}),
}


@pytest.mark.parametrize("what", TRAINED)
def test_backward_ends_at_the_lowest_trained_layer_and_no_gradient_is_another(what):
    kind, names, expected = TRAINED[what]
    config = TransformerConfig(29, **SIZES, tie_embeddings=kind is BERT)
    model = randomize(kind(config, seed=4, dtype=np.float64), scale=0.3)
    batch = get_task("reverse").batch(np.random.default_rng(1), 3)
    batch = batch if kind is Transformer else TextBatch(batch.source, batch.source)
    before = gradients(model, batch)
    model.freeze()
    model.freeze(*names, frozen=False)
    run = {stack: [] for stack in expected}

    def watch(layer, stack):
        backward = layer.backward
        layer.backward = lambda *inputs: run[stack].append(layer) or backward(*inputs)

    for stack in expected:
        for layer in getattr(model, stack).layers:
            watch(layer, stack)
    after = gradients(model, batch)
    assert {stack: len(layers) for stack, layers in run.items()} == expected
    for name, parameter in model.named_parameters():
        wanted = np.zeros_like(before[name]) if parameter.frozen else before[name]
        assert np.array_equal(after[name], wanted), name


def test_nothing_is_kept_for_a_frozen_parameter_and_a_step_leaves_it_as_it_is():
    model, batch = make_model(), get_task("reverse").batch(np.random.default_rng(1), 3)
    model.freeze(*FROZEN)
    before = model.state_dict()
    optimizer = Adam(model.parameters(), weight_decay=0.1)
    trained = sum(p.data.size for p in model.parameters() if not p.frozen)
    assert optimizer.m.size == optimizer.v.size == optimizer.weights.size == trained < model.num_parameters()
    for _ in range(2):
        training_step(model, CrossEntropyLoss(), optimizer, batch)
    after = model.state_dict()
    for name, parameter in model.named_parameters():
        assert parameter.frozen == np.array_equal(before[name], after[name]), name
        assert parameter.frozen == ("grad" not in vars(parameter)), name


def test_threads_leave_frozen_parameters_alone():
    def trained(gradients_of):
        model, loss_fn = make_model(), CrossEntropyLoss()
        model.freeze(*FROZEN)
        optimizer = Adam(model.parameters())
        for seed in range(3):
            step_with(
                gradients_of(model, loss_fn), optimizer, get_task("reverse").batch(np.random.default_rng(seed), 8)
            )
        return model.state_dict()

    alone, shared = trained(PlainGradients), trained(lambda model, loss_fn: DataParallel(model, loss_fn, num_threads=2))
    start = make_model().state_dict()
    for name, array in alone.items():
        np.testing.assert_allclose(shared[name], array, rtol=1e-9, atol=1e-12)
        assert np.array_equal(array, start[name]) == name.startswith(FROZEN), name


def test_a_frozen_matrix_passes_the_gradient_on_without_a_product_for_itself(monkeypatch):
    layer = Linear(5, 3, rng=np.random.default_rng(0), dtype=np.float64)
    x, dy = (device(np.random.default_rng(n).standard_normal(shape)) for n, shape in ((1, (2, 4, 5)), (2, (2, 4, 3))))
    dx = layer.backward(dy, layer.forward(x)[1])
    layer.freeze()
    monkeypatch.setattr("minitransformer.layers.linear.linear_backward", None)
    assert np.array_equal(host(layer.backward(dy, layer.forward(x)[1])), host(dx))


def test_freezing_is_undone_and_kept_by_copies():
    model = GPT(gpt_config(29, **SIZES), seed=1)
    model.freeze()
    assert all(parameter.frozen for parameter in model.parameters())
    assert all(parameter.frozen for parameter in replica(model).parameters())
    with pytest.raises(ValueError, match="every parameter is frozen"):
        Adam(model.parameters())
    model.freeze(frozen=False)
    assert not any(parameter.frozen for parameter in model.parameters())
    assert not Parameter(np.zeros(2)).frozen


def test_a_name_that_the_model_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"nothing called 'encoder.layers.9' .* it has .*encoder, decoder"):
        make_model().freeze("decoder", "encoder.layers.9")
