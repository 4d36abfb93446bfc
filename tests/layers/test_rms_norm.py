"""The RMSNorm layer starts as plain normalisation, scales by what it has learnt, and checks its input."""

import numpy as np

from minitransformer.layers import RMSNorm
from tests.functional.test_rms_norm import naive_rms_norm
from tests.helpers import host, random_array, randomize, relative_error

B, T, C = 2, 4, 7


def example():
    return random_array(np.random.default_rng(21), B, T, C)


def test_rms_norm_layer_equals_its_formula_token_by_token():
    layer, x = randomize(RMSNorm(C, eps=0.2, dtype=np.float64)), example()
    expected = np.apply_along_axis(naive_rms_norm, -1, host(x), host(layer.gamma.data), 0.2)
    assert relative_error(layer(x), expected) <= 1e-14


def test_rms_norm_layer_starts_with_scale_one_and_has_no_other_parameter():
    layer, x = RMSNorm(C, dtype=np.float64), example()
    expected = np.apply_along_axis(naive_rms_norm, -1, host(x), np.ones(C))
    assert relative_error(layer(x), expected) <= 1e-14
    assert [name for name, _ in layer.named_parameters()] == ["gamma"]
