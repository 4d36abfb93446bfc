"""conv1d is a sum over a few neighbouring tokens: none of them later if it is causal, and none of them padding."""

import numpy as np
import pytest

from minitransformer.functional import conv1d, conv1d_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, I, O = 2, 7, 3, 4
MASK = np.array([[True] * 7, [False, True, True, True, True, False, False]])
every_kernel = pytest.mark.parametrize(
    ("kernel", "dilation", "causal"),
    [(1, 1, True), (2, 1, True), (3, 1, False), (3, 2, True), (4, 1, False), (4, 2, False), (3, 9, True)],
)


def naive_conv1d(x, W, b, dilation, causal, mask):
    """Token by token, tap by tap."""
    B, T, I = x.shape
    K, _, O = W.shape
    reach = (K - 1) * dilation
    y = np.empty((B, T, O))
    for n, t, o in np.ndindex(B, T, O):
        y[n, t, o] = b[o]
        for k in range(K):
            s = t + k * dilation - (reach if causal else reach // 2)
            if 0 <= s < T and mask[n, s]:
                y[n, t, o] += sum(x[n, s, i] * W[k, i, o] for i in range(I))
    return y


def example(kernel, dtype=np.float64):
    """x, W, b and dy."""
    rng = np.random.default_rng(3)
    return [random_array(rng, *shape, dtype=dtype) for shape in ((B, T, I), (kernel, I, O), (O,), (B, T, O))]


@every_kernel
def test_each_output_is_a_sum_over_the_tokens_under_the_kernel_and_padding_is_read_as_zeros(kernel, dilation, causal):
    x, W, b, _ = example(kernel)
    for mask, seen in ((None, np.ones((B, T), bool)), (device(MASK), MASK)):
        expected = naive_conv1d(host(x), host(W), host(b), dilation, causal, seen)
        assert relative_error(conv1d(x, W, b, dilation, causal, mask)[0], expected) <= 1e-14


@pytest.mark.parametrize(("kernel", "dilation"), [(2, 1), (3, 1), (3, 2)])
def test_a_causal_convolution_reads_no_later_token_and_a_gradient_reaches_no_earlier_output(kernel, dilation):
    x, W, b, dy = example(kernel)
    y, cache = conv1d(x, W, b, dilation)
    dx, *_ = conv1d_backward(dy, cache)
    for t in range(1, T):
        other, later = host(x).copy(), host(dy).copy()
        other[:, t] += 1.0
        later[:, t] += 1.0
        assert same(conv1d(device(other), W, b, dilation)[0][:, :t], y[:, :t])
        assert same(conv1d_backward(device(later), cache)[0][:, t + 1 :], dx[:, t + 1 :])
