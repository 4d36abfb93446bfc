"""LayerNorm gives each token mean 0 and variance 1; its gradient sees neither a shift nor a scaling of the token."""

import numpy as np
import pytest

from minitransformer.functional import layer_norm, layer_norm_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, C = 2, 4, 7


def example(dtype=np.float64):
    """x, gamma, beta and dy; x is not centred and has a different spread in each token."""
    rng = np.random.default_rng(10)
    x = (rng.standard_normal((B, T, C)) * rng.uniform(0.5, 3.0, (B, T, 1)) + 1.5).astype(dtype)
    x.setflags(write=False)
    return device(x), *(random_array(rng, *shape, dtype=dtype) for shape in ((C,), (C,), (B, T, C)))


def test_the_gradients_of_the_parameters_are_summed_over_all_leading_axes():
    rng = np.random.default_rng(13)
    x, dy, gamma, beta = (random_array(rng, *shape) for shape in ((2, 3, 4, C), (2, 3, 4, C), (C,), (C,)))
    four = layer_norm_backward(dy, layer_norm(x, gamma, beta)[1])
    two = layer_norm_backward(dy.reshape(-1, C), layer_norm(x.reshape(-1, C), gamma, beta)[1])
    assert all(same(a.reshape(-1, C), b.reshape(-1, C)) for a, b in zip(four, two, strict=True))


@pytest.mark.parametrize("value", [0.1, 1e6 / 3, -1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layer_norm_of_equal_features_is_beta(value, dtype):
    rng = np.random.default_rng(14)
    gamma, beta, dy = (random_array(rng, *shape, dtype=dtype) for shape in ((107,), (107,), (2, 107)))
    x = device(np.full((2, 107), value, dtype))  # 107 times a rounded 1 / 107 is not 1, in either dtype
    y, cache = layer_norm(x, gamma, beta)
    assert relative_error(y, np.broadcast_to(host(beta), y.shape)) <= 100 * np.finfo(dtype).eps
    assert np.isfinite(host(layer_norm_backward(dy, cache)[0])).all()


@pytest.mark.parametrize("C", [64, 1500])
@pytest.mark.parametrize("mean", [10.0, -1e6])
def test_layer_norm_keeps_its_digits_where_the_mean_is_large(C, mean):
    rng = np.random.default_rng(11)
    x = (rng.standard_normal((70, C)) + mean).astype(np.float32)
    gamma, beta = rng.standard_normal((2, C)).astype(np.float32)
    exact, _ = layer_norm(*(device(array.astype(np.float64)) for array in (x, gamma, beta)))
    y, _ = layer_norm(*map(device, (x, gamma, beta)))
    assert relative_error(y, host(exact)) <= 2e-6


def test_tokens_of_all_sizes_and_means_do_not_disturb_each_other():
    rng = np.random.default_rng(12)
    sizes, means = np.meshgrid([1e-30, 1e-6, 1.0, 1e6, 1e30], [0.0, 1e4])
    x = (sizes[..., None] * (rng.standard_normal((2, 5, C)) + means[..., None])).astype(np.float32)
    gamma, beta = rng.standard_normal((2, C)).astype(np.float32)
    together = host(layer_norm(*map(device, (x, gamma, beta)))[0])
    for token in np.ndindex(2, 5):
        alone = host(layer_norm(*map(device, (x[token][None], gamma, beta)))[0])
        in_double = layer_norm(*(device(array.astype(np.float64)) for array in (x[token][None], gamma, beta)))[0]
        assert relative_error(alone, host(in_double)) <= 1e-5
        assert relative_error(together[token], alone[0]) <= 1e-6


@pytest.mark.parametrize("spread", [1e-4, 1.0, 1e4])
def test_layer_norm_of_one_token_keeps_its_digits_where_the_mean_is_many_deviations_from_zero(spread):
    """As in decoding. In double precision its rounding does not show."""
    rng = np.random.default_rng(16)
    x = (spread * (rng.standard_normal((1, 64)) + 3e3)).astype(np.float32)
    gamma, beta = (random_array(rng, 64, dtype=np.float32) for _ in range(2))
    expected, _ = layer_norm(*(device(host(array).astype(np.float64)) for array in (x, gamma, beta)), eps=1e-12)
    assert relative_error(layer_norm(device(x), gamma, beta, eps=1e-12)[0], host(expected)) <= 2e-6


@pytest.mark.parametrize("size", [1e-25, 1e-10])
def test_layer_norm_without_eps_sees_no_scaling_down_to_the_smallest_squares(size):
    x, gamma, beta, _ = example(np.float32)
    y, _ = layer_norm(x, gamma, beta, eps=0.0)
    assert relative_error(layer_norm(x * size, gamma, beta, eps=0.0)[0], y) <= 1e-5
