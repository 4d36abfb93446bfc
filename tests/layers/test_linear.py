"""Linear owns W and b of y = x W + b, several maps side by side if asked, and refuses what does not fit."""

import numpy as np
import pytest

from minitransformer.layers import Linear
from tests.helpers import device, host, random_array, randomize, relative_error

B, T, I, O = 2, 4, 5, 7


def example(dtype=np.float64):
    return random_array(np.random.default_rng(20), B, T, I, dtype=dtype)


def test_blocks_are_independent_maps_in_one_matrix():
    layer, x = randomize(Linear(I, O, blocks=3, dtype=np.float64)), example()
    y, x, W, b = (host(array) for array in (layer(x), x, layer.W.data, layer.b.data))
    assert y.shape == (B, T, 3 * O)
    for i in range(3):
        run = slice(i * O, (i + 1) * O)
        assert relative_error(y[..., run], x @ W[:, run] + b[run]) <= 1e-12


def test_linear_layer_without_bias_has_one_parameter_and_maps_zero_to_zero():
    layer = randomize(Linear(I, O, bias=False, dtype=np.float64))
    assert [name for name, _ in layer.named_parameters()] == ["W"]
    assert (layer(device(np.zeros((T, I)))) == 0).all()


def test_a_wrong_gradient_is_refused_before_anything_has_changed():
    layer = randomize(Linear(I, O, dtype=np.float64))
    _, cache = layer.forward(example())
    for shape in ((B, T, O + 1), (B, T - 1, O), (T, B, O), (B * T, O)):
        with pytest.raises(ValueError, match=r"dy must be of shape \(2, 4, 7\)"):
            layer.backward(device(np.ones(shape)), cache)
    for parameter in layer.parameters():
        assert not host(parameter.grad).any()
