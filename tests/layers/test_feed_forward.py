"""The feed-forward network with each activation, gated or not, and without biases, is its equation token by token."""

import numpy as np
import pytest

from minitransformer.functional import dropout
from minitransformer.layers import ActivatedFeedForward, FeedForward
from minitransformer.layers.since_2017.feed_forward import ACTIVATIONS
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from minitransformer.system.generators import make_generator
from tests.functional.test_activations import naive_gelu, naive_gelu_tanh, naive_silu
from tests.functional.test_linear import naive_linear
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, C, F = 2, 4, 6, 7
PLAIN = {"relu": lambda x: max(0.0, x), "gelu": naive_gelu, "gelu_tanh": naive_gelu_tanh, "silu": naive_silu}
OF_THE_GATE = {"geglu": naive_gelu, "geglu_tanh": naive_gelu_tanh, "swiglu": naive_silu}
every_one = pytest.mark.parametrize("name", ACTIVATIONS)
with_and_without_bias = pytest.mark.parametrize("bias", [True, False])


def affine(x, layer):
    """x W + b for one token, where b may be missing."""
    b = np.zeros(layer.W.data.shape[1]) if layer.b is None else host(layer.b.data)
    return naive_linear(x, host(layer.W.data), b)


def naive_feed_forward(x, layer, name="relu", keep=None):
    """The network on one token x (C,); keep (F,) multiplies what is between the two maps."""
    h = affine(x, layer.expand)
    if name in OF_THE_GATE:
        h = [OF_THE_GATE[name](gate) * up for gate, up in zip(h[: len(h) // 2], h[len(h) // 2 :], strict=True)]
    else:
        h = [PLAIN[name](value) for value in h]
    if keep is not None:
        h = [value * k for value, k in zip(h, keep, strict=True)]
    return affine(h, layer.contract)


def example():
    return random_array(np.random.default_rng(27), B, T, C)


@every_one
@with_and_without_bias
def test_feed_forward_equals_its_equation_token_by_token_with_dropout_and_without(name, bias):
    layer = randomize(ActivatedFeedForward(C, F, activation=name, bias=bias, dropout_rate=0.4, dtype=np.float64))
    x = example()
    keep = host(dropout(device(np.ones((B, T, F))), 0.4, make_generator(2))[0])
    for factors, rng in ((keep, make_generator(2)), (np.ones((B, T, F)), None)):
        values = host(x)
        expected = [[naive_feed_forward(values[b, t], layer, name, factors[b, t]) for t in range(T)] for b in range(B)]
        assert relative_error(layer(x, rng=rng), expected) <= 1e-12


@with_and_without_bias
def test_the_papers_network_is_the_one_with_relu(bias):
    layer, options = FeedForward(C, F, bias=bias, dtype=np.float64), {"bias": bias, "dtype": np.float64}
    other = ActivatedFeedForward(C, F, activation="relu", **options)
    x, dy = example(), example() + 1.0
    results = []
    for each in (layer, other):
        y, cache = randomize(each).forward(x)
        results.append([y, each.backward(dy, cache), *(parameter.grad for parameter in each.parameters())])
    assert len(results[0]) == 4 + 2 * bias
    assert all(same(one, two) for one, two in zip(*results, strict=True))


@pytest.mark.parametrize("layer", ["encoder_layer", "decoder_layer"])
def test_each_layer_of_a_stack_has_the_network_of_its_config(layer):
    config = TransformerConfig(11, d_model=C, num_heads=3, d_ff=F, activation="geglu", bias=False, ffn_dropout=0.3)
    network = getattr(builder(config), layer)().feed_forward.sublayer
    assert (network.activation, network.dropout.rate) == ("geglu", 0.3)
    assert (network.expand.b, network.contract.b) == (None, None)
