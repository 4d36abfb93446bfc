"""The feed-forward network is max(0, x W1 + b1) W2 + b2, for each token alone."""

import numpy as np
import pytest

from minitransformer.functional import dropout
from minitransformer.layers import FeedForward
from minitransformer.system.generators import make_generator
from tests.functional.test_linear import naive_linear
from tests.helpers import device, host, random_array, randomize, relative_error

B, T, C, F = 2, 4, 6, 7


def naive_feed_forward(x, layer, keep=None):
    """max(0, x W1 + b1) W2 + b2 for one token x (C,); keep (F,) multiplies what is between."""
    hidden = [max(0.0, h) for h in naive_linear(x, host(layer.expand.W.data), host(layer.expand.b.data))]
    if keep is not None:
        hidden = [h * k for h, k in zip(hidden, keep, strict=True)]
    return naive_linear(hidden, host(layer.contract.W.data), host(layer.contract.b.data))


def make(rate=0.0):
    return randomize(FeedForward(C, F, dropout_rate=rate, dtype=np.float64))


def example():
    return random_array(np.random.default_rng(27), B, T, C)


def test_feed_forward_equals_equation_2_token_by_token():
    layer, x = make(), example()
    assert relative_error(layer(x), np.apply_along_axis(naive_feed_forward, -1, host(x), layer)) <= 1e-12


def test_dropout_is_between_the_two_maps():
    layer, x = make(rate=0.4), example()
    keep, _ = dropout(device(np.ones((B, T, F))), 0.4, make_generator(2))
    with_dropout, without = layer(x, rng=make_generator(2)), layer(x)
    x, keep = host(x), host(keep)
    expected = [[naive_feed_forward(x[b, t], layer, keep[b, t]) for t in range(T)] for b in range(B)]
    assert relative_error(with_dropout, expected) <= 1e-12
    assert relative_error(without, np.apply_along_axis(naive_feed_forward, -1, x, layer)) <= 1e-12


def test_feed_forward_refuses_a_wrong_width_with_both_widths():
    with pytest.raises(ValueError, match=r"\(\.\.\., 6\), got \(2, 4, 7\)"):
        make()(np.zeros((B, T, F)))
