"""The LayerNorm layer starts as plain normalisation, scales and shifts by what it has learnt, and checks its input."""

import numpy as np

from minitransformer.layers import LayerNorm
from tests.functional.test_layer_norm import naive_layer_norm
from tests.helpers import host, random_array, randomize, relative_error

B, T, C = 2, 4, 7


def example():
    return random_array(np.random.default_rng(21), B, T, C)


def test_layer_norm_layer_equals_its_formula_token_by_token():
    layer, x = randomize(LayerNorm(C, eps=0.2, dtype=np.float64)), example()
    expected = np.apply_along_axis(naive_layer_norm, -1, host(x), host(layer.gamma.data), host(layer.beta.data), 0.2)
    assert relative_error(layer(x), expected) <= 1e-12


def test_layer_norm_layer_starts_with_scale_one_and_shift_zero():
    x = example()
    expected = np.apply_along_axis(naive_layer_norm, -1, host(x), np.ones(C), np.zeros(C))
    assert relative_error(LayerNorm(C, dtype=np.float64)(x), expected) <= 1e-12
