"""The convolutional layers: what they refuse, and that decoding piece by piece gives the outputs of the whole."""

import numpy as np
import pytest

from minitransformer.layers import ActivatedConv1d, Conv1d, LayerNorm, Residual
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, C = 3, 9, 4


def x_and_mask(padding=(0, 2, 5)):
    """x (B, T, C) with padding on the left."""
    return random_array(np.random.default_rng(5), B, T, C), np.arange(T) >= np.array(padding)[:, None]


@pytest.mark.parametrize("pieces", [(9,), (1,) * 9, (4, 1, 4), (2, 7)])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (2, 1), (3, 2), (3, 6)])
def test_decoding_in_pieces_equals_the_whole(pieces, kernel, dilation):
    layer = randomize(ActivatedConv1d(C, kernel, dilation=dilation, dtype=np.float64))
    x, mask = x_and_mask()
    expected = layer(x, device(mask))
    buffer, start, got = layer.conv.make_buffer(B), 0, []
    for count in pieces:
        now = slice(start, start + count)
        got.append(host(layer.extend(x[:, now], buffer, device(mask[:, now]))))
        start += count
    assert relative_error(np.concatenate(got, axis=1), expected) <= 1e-14


def test_a_buffer_keeps_the_chosen_sequences():
    layer = randomize(Conv1d(C, 2, 3, dtype=np.float64))
    x, _ = x_and_mask()
    whole, buffer = layer(x), layer.make_buffer(B)
    layer.extend(x[:, :6], buffer)
    buffer.select(device(np.array([2, 0, 2])))
    got = host(layer.extend(device(host(x)[[2, 0, 2], 6:]), buffer))
    assert relative_error(got, host(whole)[[2, 0, 2], 6:]) <= 1e-14


def test_padding_changes_nothing_through_a_residual_connection():
    layer = randomize(Residual(ActivatedConv1d(C, 3, causal=False, dtype=np.float64), LayerNorm(C, dtype=np.float64)))
    x, mask = x_and_mask()
    y = host(layer(x, device(mask)))
    for row, first in enumerate((0, 2, 5)):
        assert relative_error(y[row : row + 1, first:], layer(x[row : row + 1, first:])) <= 1e-14


def test_a_wrong_gradient_is_refused_before_anything_has_changed():
    layer = randomize(Conv1d(C, 2, 3, dtype=np.float64))
    _, cache = layer.forward(x_and_mask()[0])
    with pytest.raises(ValueError, match=r"dy must be of shape \(3, 9, 2\)"):
        layer.backward(random_array(np.random.default_rng(0), B, T, C), cache)
    assert same(layer.W.grad, np.zeros(layer.W.data.shape))
