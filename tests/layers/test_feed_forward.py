"""The feed-forward network with each activation, gated or not, and without biases, is its parts in order."""

import numpy as np
import pytest

from minitransformer import functional
from minitransformer.functional import dropout
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.layers import ActivatedFeedForward, FeedForward
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from minitransformer.system.generators import make_generator
from tests.helpers import device, random_array, randomize, relative_error, same

B, T, C, F = 2, 4, 6, 7
every_one = pytest.mark.parametrize("name", ACTIVATIONS)
with_and_without_bias = pytest.mark.parametrize("bias", [True, False])


def example():
    return random_array(np.random.default_rng(27), B, T, C)


@every_one
@with_and_without_bias
def test_the_network_is_two_maps_with_an_activation_and_dropout_between(name, bias):
    layer = randomize(ActivatedFeedForward(C, F, activation=name, bias=bias, dropout_rate=0.4, dtype=np.float64))
    x = example()
    h, _ = getattr(functional, name)(layer.expand(x))
    keep, _ = dropout(device(np.ones((B, T, F))), 0.4, make_generator(2))
    assert relative_error(layer(x), layer.contract(h)) <= 1e-12
    assert relative_error(layer(x, rng=make_generator(2)), layer.contract(keep * h)) <= 1e-12


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
