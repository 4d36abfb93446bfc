"""Add & Norm: LayerNorm(x + Dropout(Sublayer(x))) as in the paper, or x + Dropout(Sublayer(LayerNorm(x)))."""

import numpy as np
import pytest

from minitransformer.functional import dropout
from minitransformer.layers import CrossAttention, LayerNorm, Linear, Residual, RMSNorm
from minitransformer.layers.residual import PLACEMENTS
from minitransformer.system.generators import make_generator
from tests.helpers import device, random_array, randomize, relative_error

B, T, S, C = 2, 4, 5, 6


def make(placement, rate=0.0, kind=LayerNorm, sublayer=None):
    sublayer = sublayer or Linear(C, C, dtype=np.float64)
    norm, after = (kind(C, eps=0.2, dtype=np.float64) for _ in range(2))
    options = {"placement": placement, "norm_after": after if placement == "sandwich" else None}
    return randomize(Residual(sublayer, norm, dropout_rate=rate, **options))


def example():
    return random_array(np.random.default_rng(31), B, T, C)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_residual_is_its_equation_and_dropout_acts_on_the_sublayer_and_not_on_the_sum(placement, kind):
    layer, x = make(placement, rate=0.4, kind=kind), example()
    drawn, _ = dropout(device(np.ones((B, T, C))), 0.4, make_generator(4))
    for rng, keep in ((None, 1.0), (make_generator(4), drawn)):
        if placement == "post":
            expected = layer.norm(x + keep * layer.sublayer(x))
        else:
            s = layer.sublayer(layer.norm(x))
            expected = x + keep * (layer.norm_after(s) if placement == "sandwich" else s)
        assert relative_error(layer(x, rng=rng), expected) <= 1e-12


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_further_inputs_are_passed_on_unchanged_and_get_their_gradients(norm):
    attention = CrossAttention(C, 2, dtype=np.float64)
    layer = make(norm, sublayer=attention)
    x, memory = example(), random_array(np.random.default_rng(32), B, S, C)
    dx, dmemory = layer.backward(x, layer.forward(x, memory)[1])
    inner = layer.norm(x) if norm == "pre" else x
    incoming = x if norm == "pre" else layer.norm.backward(x, layer.norm.forward(x + attention(x, memory))[1])
    _, expected = attention.backward(incoming, attention.forward(inner, memory)[1])
    assert dx.shape == x.shape
    assert relative_error(dmemory, expected) <= 1e-12
