"""RMSNorm gives each token the mean square 1; its gradient sees no scaling of the token."""

import numpy as np
import pytest

from minitransformer.functional import layer_norm, rms_norm, rms_norm_backward
from tests.helpers import device, host, protected, random_array, relative_error, same

B, T, C = 2, 4, 7


def example(dtype=np.float64):
    """x, gamma and dy; x is not centred and has a different size in each token."""
    rng = np.random.default_rng(10)
    x = (rng.standard_normal((B, T, C)) * rng.uniform(0.5, 3.0, (B, T, 1)) + 1.5).astype(dtype)
    return protected(device(x)), *(random_array(rng, *shape, dtype=dtype) for shape in ((C,), (B, T, C)))


def test_rms_norm_of_nothing_is_nothing():
    _, gamma, dy = example()
    y, cache = rms_norm(device(np.zeros((B, T, C))), gamma)  # eps alone stands under the root
    assert same(y, np.zeros((B, T, C)))
    assert np.isfinite(host(rms_norm_backward(dy, cache)[0])).all()


def test_rms_norm_of_a_token_with_mean_zero_is_layer_norm_without_shift():
    x, gamma, _ = example()
    eps = 0.3
    centred = device(host(x) - host(x).mean(axis=-1, keepdims=True))
    expected, _ = layer_norm(centred, gamma, device(np.zeros(C)), eps)
    assert relative_error(rms_norm(centred, gamma, eps)[0], expected) <= 1e-14


def test_tokens_of_all_sizes_do_not_disturb_each_other():
    rng = np.random.default_rng(12)
    sizes = np.array([1e-30, 1e-6, 1.0, 1e6, 1e30])
    x = (sizes[:, None] * rng.standard_normal((5, C))).astype(np.float32)
    gamma = device(rng.standard_normal(C).astype(np.float32))
    together = host(rms_norm(device(x), gamma)[0])
    for token in range(5):
        assert relative_error(together[token], host(rms_norm(device(x[token][None]), gamma)[0])[0]) <= 1e-6


@pytest.mark.parametrize("size", [1e-25, 1e-10])
def test_rms_norm_without_eps_sees_no_scaling_down_to_the_smallest_squares(size):
    x, gamma, _ = example(np.float32)
    y, _ = rms_norm(x, gamma, eps=0.0)
    assert relative_error(rms_norm(x * size, gamma, eps=0.0)[0], y) <= 1e-5
