"""Add & Norm: LayerNorm(x + Dropout(Sublayer(x))) as in the paper, or x + Dropout(Sublayer(LayerNorm(x)))."""

import numpy as np
import pytest

from minitransformer.functional import dropout
from minitransformer.layers import CrossAttention, LayerNorm, Linear, Residual, RMSNorm
from minitransformer.layers.residual import PLACEMENTS
from minitransformer.system.generators import make_generator
from tests.functional.test_layer_norm import naive_layer_norm
from tests.functional.test_linear import naive_linear
from tests.functional.test_rms_norm import naive_rms_norm
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, C = 2, 4, 5, 6


def naive_norm(x, layer):
    """LayerNorm or RMSNorm of every token of x (B, T, C), with the parameters of `layer`."""
    naive = naive_layer_norm if isinstance(layer, LayerNorm) else naive_rms_norm
    return np.apply_along_axis(naive, -1, host(x), *(host(p.data) for p in layer.parameters()), layer.eps)


def naive_residual(x, layer, sublayer, keep=1.0):
    """The two equations, with `sublayer` a function (B, T, C) -> (B, T, C) on the host, as all that is naive."""
    x = host(x)
    if layer.placement == "post":
        return naive_norm(x + keep * sublayer(x), layer.norm)
    s = sublayer(naive_norm(x, layer.norm))
    return x + keep * (naive_norm(s, layer.norm_after) if layer.placement == "sandwich" else s)


def make(placement, rate=0.0, kind=LayerNorm, sublayer=None):
    sublayer = sublayer or Linear(C, C, dtype=np.float64)
    norm, after = (kind(C, eps=0.2, dtype=np.float64) for _ in range(2))
    options = {"placement": placement, "norm_after": after if placement == "sandwich" else None}
    return randomize(Residual(sublayer, norm, dropout_rate=rate, **options))


def example():
    return random_array(np.random.default_rng(31), B, T, C)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_residual_equals_its_equation(placement, kind):
    layer, x = make(placement, kind=kind), example()
    W, b = host(layer.sublayer.W.data), host(layer.sublayer.b.data)
    expected = naive_residual(x, layer, lambda x: np.apply_along_axis(naive_linear, -1, x, W, b))
    assert relative_error(layer(x), expected) <= 1e-12


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_dropout_acts_on_the_sublayer_and_not_on_the_sum(placement):
    layer, x = make(placement, rate=0.4), example()
    W, b = host(layer.sublayer.W.data), host(layer.sublayer.b.data)
    keep, _ = dropout(device(np.ones((B, T, C))), 0.4, make_generator(4))
    expected = naive_residual(x, layer, lambda x: np.apply_along_axis(naive_linear, -1, x, W, b), host(keep))
    assert relative_error(layer(x, rng=make_generator(4)), expected) <= 1e-12


def test_with_a_sublayer_of_zeros_pre_norm_is_the_identity():
    norm, x, dy = LayerNorm(C, dtype=np.float64), example(), example() + 1
    layer = Residual(Linear(C, C, dtype=np.float64), norm, placement="pre")
    y, cache = layer.forward(x)  # weights of zero
    assert same(y, x)
    assert same(layer.backward(dy, cache), dy)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_further_inputs_are_passed_on_unchanged_and_get_their_gradients(norm):
    attention = CrossAttention(C, 2, dtype=np.float64)
    layer = make(norm, sublayer=attention)
    x, memory = example(), random_array(np.random.default_rng(32), B, S, C)
    dx, dmemory = layer.backward(x, layer.forward(x, memory)[1])
    inner = device(naive_norm(x, layer.norm)) if norm == "pre" else x
    incoming = x if norm == "pre" else layer.norm.backward(x, layer.norm.forward(x + attention(x, memory))[1])
    _, expected = attention.backward(incoming, attention.forward(inner, memory)[1])
    assert dx.shape == x.shape
    assert relative_error(dmemory, expected) <= 1e-12
