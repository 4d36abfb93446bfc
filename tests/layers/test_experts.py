"""A mixture of experts is the weighted sum of its chosen networks, token by token, and its router learns as said."""

import dataclasses
import math
from functools import partial
from unittest import mock

import numpy as np
import pytest

from minitransformer.config import Experts
from minitransformer.data.text import TextBatch
from minitransformer.decoding import decoding_state
from minitransformer.functional.since_2017.routing import expert_weights, expert_weights_backward
from minitransformer.gradcheck.judge.gradients import check_gradients
from minitransformer.gradcheck.judge.report import COMPLEX_STEP
from minitransformer.inspection import (
    count_parameters,
    flops_by_parameters,
    kept_activations,
    summarize,
    training_flops,
)
from minitransformer.inspection.activation_memory import _distinct_arrays
from minitransformer.inspection.interventions import Altered, Change
from minitransformer.layers import FeedForward
from minitransformer.layers.losses import with_weight
from minitransformer.layers.since_2017.lora import LoRALinear
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.models.build import builder
from minitransformer.training import CrossEntropyLoss, DataParallel
from minitransformer.training.parallel import threads as threads_module
from minitransformer.training.saving.checkpoint import load_checkpoint, save_checkpoint
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, C, F, E, K = 2, 5, 6, 7, 4, 3
ROUTERS = [("softmax", True), ("softmax", False), ("sigmoid", True), ("sigmoid", False)]
every_router = pytest.mark.parametrize(("scores", "renormalize"), ROUTERS)


def mixture(per_token=K, **router):
    sizes = {"d_model": C, "num_heads": 2, "d_ff": F, "activation": "swiglu"}
    experts = Experts(E, per_token, **{"balance": 0.0, **router})
    return randomize(builder(TransformerConfig(11, **sizes, experts=experts), dtype=np.float64).feed_forward())


def example(seed=1):
    return random_array(np.random.default_rng(seed), B, T, C)


def naive_choice(token, layer, scores):
    """[(expert, its score)] of one token, the best first, and all scores."""
    logits = [sum(token[i] * W for i, W in enumerate(host(layer.router.W.data)[:, e])) for e in range(E)]
    if scores == "softmax":
        p = [math.exp(x) / sum(math.exp(z) for z in logits) for x in logits]
        ranked = sorted(range(E), key=lambda e: -p[e])
    else:
        p = [1.0 / (1.0 + math.exp(-x)) for x in logits]
        bias = host(layer.bias.data)
        ranked = sorted(range(E), key=lambda e: -(p[e] + bias[e]))
    return ranked, p, logits


@every_router
def test_the_output_is_the_weighted_sum_of_the_chosen_networks_token_by_token(scores, renormalize):
    layer, x = mixture(scores=scores, renormalize=renormalize), example()
    expected = np.zeros((B, T, C))
    for b, t in np.ndindex(B, T):
        ranked, p, _ = naive_choice(host(x)[b, t], layer, scores)
        total = sum(p[e] for e in ranked[:K]) if renormalize else 1.0
        for e in ranked[:K]:
            expected[b, t] += p[e] / total * host(layer.experts[e](x[b, t : t + 1]))[0]
    assert relative_error(layer(x), expected) <= 1e-13


def test_the_bias_of_deepseek_changes_who_is_chosen_and_not_how_much_they_count():
    layer, x = mixture(1, scores="sigmoid", renormalize=False), example()
    layer.bias.data[...] = device(np.array([0.0, 9.0, 0.0, 0.0]))
    p = 1.0 / (1.0 + np.exp(-host(x) @ host(layer.router.W.data)))
    assert relative_error(layer(x), p[..., 1:2] * host(layer.experts[1](x))) <= 1e-13


def test_a_token_gets_the_same_whatever_tokens_are_beside_it():
    layer, x = mixture(), example()
    y = host(layer(x))
    for b, t in np.ndindex(B, T):
        assert relative_error(layer(x[b, t : t + 1]), y[b, t : t + 1]) <= 1e-13


def auxiliary_loss(x, layer, counted):
    """The two losses of the counted tokens by their definitions, with the loads as constants."""
    probabilities, logits, loads, count = [], [], np.zeros(E), counted.sum()
    for token in host(x)[counted]:
        ranked, p, own_logits = naive_choice(token.real, layer, "softmax")
        loads[ranked[:K]] += 1.0 / (count * K)
        logits.append(token @ host(layer.router.W.data))
        probabilities.append(np.exp(logits[-1]) / np.exp(logits[-1]).sum())
        assert np.allclose([*own_logits, *p], [*logits[-1].real, *probabilities[-1].real])
    balance = E * sum(loads[e] * np.mean([p[e] for p in probabilities]) for e in range(E))
    z = np.mean([np.log(np.exp(own).sum()) ** 2 for own in logits])
    return layer.balance_weight * balance + layer.z_weight * z


PADDED = np.array([[True] * 5, [True, True, False, False, False]])  # the second text has 2 tokens


def test_backward_adds_the_gradient_of_the_two_auxiliary_losses():
    layer = mixture(balance=0.7, z_loss=0.3)

    def forward(x, counted):
        y, cache = layer.forward(x, device(counted[:, None, None]))
        return (y * 0).sum() + device(np.asarray(auxiliary_loss(x, layer, counted))), cache

    def backward(dloss, cache):
        return layer.backward(device(np.zeros((B, T, C))), with_weight(cache, float(host(dloss).real)))

    for counted in (PADDED | True, PADDED):
        arrays, named = {"x": host(example())}, {"R": layer.router.W}
        report = check_gradients(partial(forward, counted=counted), backward, arrays, named, method=COMPLEX_STEP)
        assert report.passed, report


def test_the_gradient_of_the_bias_is_the_load_above_an_equal_share_times_its_weight():
    layer, x = mixture(2, scores="sigmoid", balance=0.01), example()
    for counted in (PADDED | True, PADDED):
        _, cache = layer.forward(x, device(counted))
        layer.zero_grad()
        layer.backward(device(np.zeros((B, T, C))), cache)
        loads = host(cache.chosen)[counted.reshape(-1)].sum(axis=0) / (counted.sum() * 2)
        assert relative_error(layer.bias.grad, 0.01 * (loads - 1 / E)) <= 1e-13


def router_gradients(model, *ids):
    """The gradients of the routers, and of their biases, by the auxiliary losses alone."""
    logits, cache = model.forward(*ids)
    model.zero_grad()
    model.backward(logits * 0, cache)
    named = {name: host(one.grad).copy() for name, one in model.named_parameters() if ".feed_forward" in name}
    return {name: gradient for name, gradient in named.items() if gradient.any()}


@pytest.mark.parametrize("kind", [GPT, BERT, Transformer])
@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_padding_has_no_part_in_the_gradient_of_the_auxiliary_losses(kind, scores):
    start = {"start": 0} if kind is Transformer else {}  # as in T5: there the first 0 is a token
    config = dataclasses.replace(with_experts(4, scores=scores, balance=0.3, z_loss=0.7), **start)
    model = randomize(kind(config, dtype=np.float64), scale=0.4)
    texts = [np.array([[4, 9, 6, 3, 5, 8, 10]]), np.array([[7, 5, 9]])]
    rows = [np.pad(text, ((0, 0), (0, 7 - text.shape[1]))) for text in texts]

    def inputs(ids):
        return (ids, np.where(np.arange(ids.shape[1]) > 0, ids, 0)) if kind is Transformer else (ids,)

    for text, row in zip(texts, rows, strict=True):
        alone, padded = (router_gradients(model, *inputs(ids)) for ids in (text, np.pad(row, ((0, 0), (0, 1)))))
        assert alone.keys() == padded.keys()
        assert all(relative_error(padded[name], alone[name]) <= 1e-12 for name in alone)
    if scores == "softmax":  # its balance loss of two texts is not the mean of theirs
        config = dataclasses.replace(config, experts=dataclasses.replace(config.experts, balance=0.0))
        model = randomize(kind(config, dtype=np.float64), scale=0.4)
    both = router_gradients(model, *inputs(np.concatenate(rows)))
    parts = [router_gradients(model, *inputs(text)) for text in texts]
    for name in both:
        mean = sum(text.shape[1] / 10 * part.get(name, 0) for text, part in zip(texts, parts, strict=True))
        assert relative_error(both[name], mean) <= 1e-12, name


def test_padding_alone_is_no_token_that_a_loss_could_be_a_mean_of():
    for scores in ("softmax", "sigmoid"):
        model = GPT(with_experts(4, scores=scores, balance=0.3, z_loss=0.7))
        assert not router_gradients(model, np.zeros((2, 3), int))


def test_a_gradient_of_another_shape_is_refused_before_anything_has_changed():
    layer = mixture()
    _, cache = layer.forward(example())
    with pytest.raises(ValueError, match=r"dy must be of shape \(2, 5, 6\), got \(10, 6\)"):
        layer.backward(device(np.ones((B * T, C))), cache)
    assert not any(host(parameter.grad).any() for parameter in layer.parameters())


def with_experts(*numbers, **router):
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 7, "num_layers": 2, "max_len": 9, "dropout": 0.0}
    return gpt_config(11, **sizes, experts=Experts(*numbers, **router))


def test_a_configuration_puts_a_mixture_in_every_layer_of_every_stack():
    fields = {"activation": "geglu", "bias": False, "ffn_dropout": 0.3}
    experts = Experts(5, 3, renormalize=False, scores="sigmoid", balance=0.2, z_loss=0.1)
    model = Transformer(TransformerConfig(11, d_model=6, num_heads=2, d_ff=7, num_layers=2, **fields, experts=experts))
    for layer in (*model.encoder.layers, *model.decoder.layers):
        network = layer.feed_forward.sublayer
        assert (network.experts_per_token, network.renormalize, len(network.experts)) == (3, False, 5)
        assert (network.balance_weight, network.z_weight, network.bias.data.shape) == (0.2, 0.1, (5,))
        assert all((one.activation, one.dropout.rate, one.expand.b) == ("geglu", 0.3, None) for one in network.experts)


def test_without_experts_the_layer_is_the_papers_network():
    model = Transformer(TransformerConfig(11, d_model=8, num_heads=2, d_ff=7, num_layers=1, max_len=9))
    assert type(model.encoder.layers[0].feed_forward.sublayer) is FeedForward


def test_decoding_in_pieces_equals_the_whole_and_a_saved_model_computes_the_same(tmp_path):
    for scores in ("softmax", "sigmoid"):
        model = randomize(GPT(with_experts(4, scores=scores), dtype="float64"))
        save_checkpoint(tmp_path / "model", model)
        loaded, _ = load_checkpoint(tmp_path / "model")
        ids = np.random.default_rng(6).integers(1, 11, (3, 7))
        expected, state = model(ids), decoding_state(model, ids[:, :2], 7)
        assert same(loaded(ids), expected)
        for end in range(2, 8):
            start = 0 if end == 2 else end - 1
            assert relative_error(state.extend(ids[:, start:end]), expected[:, end - 1]) <= 1e-12


@pytest.mark.host_only
@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_threads_that_share_a_batch_find_the_auxiliary_gradient_of_the_whole(scores):
    ids = np.random.default_rng(4).integers(1, 11, (4, 7))
    # the balance loss is not a mean over tokens, so that of a batch is not that of its parts
    config = with_experts(4, scores=scores, balance=0.3 * (scores == "sigmoid"), z_loss=0.7)
    found = {}
    for threads in (1, 2):
        model = randomize(GPT(config, dtype="float64"), scale=0.3)
        with mock.patch.object(threads_module, "MIN_NUMBERS", 1):
            DataParallel(model, CrossEntropyLoss(), threads)(TextBatch(ids[:, :-1], ids[:, 1:]))
        found[threads] = {name: parameter.grad.copy() for name, parameter in model.named_parameters()}
    for name, gradient in found[1].items():
        assert np.abs(found[2][name] - gradient).max() <= 1e-13 * np.abs(gradient).max(initial=1.0), name


@pytest.mark.host_only
def test_memory_parameters_and_operations_are_those_of_the_experts_that_a_token_uses():
    config = dataclasses.replace(with_experts(7, per_token=2), dropout=0.1)
    model = randomize(GPT(config, dtype="float32"))
    assert count_parameters(config, GPT) == model.num_parameters()
    assert sum(row.parameters for row in summarize(model)) == model.num_parameters()
    assert [row.kind for row in summarize(model)].count("MixtureOfExperts") == 2
    ids = np.random.default_rng(5).integers(1, 11, (2, 9))
    y, cache = model.features(ids, rng=np.random.default_rng(0))
    arrays = dict(_distinct_arrays((model.parameters(), {"model": cache, "features": y})))
    estimate = kept_activations(config, 2, 9, 9, GPT)
    assert sum(row.bytes * row.count for row in estimate) == sum(array.nbytes for array in arrays.values())
    dense = dataclasses.replace(config, experts=None)
    flops, of_one = (training_flops(one, 10.0, 20.0, 5.0, 6.0)["feed-forward"] for one in (config, dense))
    assert flops == 2 * of_one + 6 * 2 * 30.0 * 8 * 7  # two experts, and the router of two layers
    router = 2 * 8 * (7 - 2) + (7 - 2) * 2 * (2 * 8 * 7 + 7 + 8)
    assert flops_by_parameters(config, 10.0, 20.0) == 6.0 * (count_parameters(config) - 2 * router) * 15.0


def test_a_router_may_be_another_layer_with_a_cache_of_its_own():
    layer, x = mixture(), device(example())
    before = layer(x)
    layer.router = LoRALinear(layer.router, 2)  # which adds nothing while B is 0
    assert same(layer(x), before)
    layer.router = Altered(layer.router, Change("router", scale=1.0), np.float64)  # nor does this change anything
    assert same(layer(x), before)


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_no_tokens_at_all_are_an_empty_output_and_no_gradient(scores):
    layer = mixture(scores=scores, balance=0.1, z_loss=0.1)
    y, cache = layer.forward(device(np.empty((0, C))))
    assert layer.backward(y, cache).shape == y.shape == (0, C)
    assert not any(host(parameter.grad).any() for parameter in layer.parameters())


def test_scores_that_all_underflow_weigh_nothing_instead_of_nan():
    p, chosen = device(np.array([[0.0, 0.0, 0.0], [0.2, 0.1, 0.0]])), device(np.array([[True, True, False]] * 2))
    w, cache = expert_weights(p, chosen)
    assert np.allclose(host(w), [[0, 0, 0], [2 / 3, 1 / 3, 0]], rtol=1e-15, atol=0)
    assert np.isfinite(host(expert_weights_backward(device(np.ones((2, 3))), cache))).all()
