"""Every layer takes arrays of its own width and dtype, and says so of any other."""

import numpy as np
import pytest

from minitransformer.layers import (
    GRU,
    LSTM,
    Conv1d,
    CrossAttention,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
    MemoryAttention,
    PositionalEncoding,
    RMSNorm,
    RotaryPositions,
    SelfAttention,
)
from tests.helpers import device

B, T, C = 2, 4, 6
# a call of the layer, made for vectors of C numbers, with one array
LAYERS = {
    "Linear": lambda x, dtype: Linear(C, 5, dtype=dtype)(x),
    "LayerNorm": lambda x, dtype: LayerNorm(C, dtype=dtype)(x),
    "RMSNorm": lambda x, dtype: RMSNorm(C, dtype=dtype)(x),
    "FeedForward": lambda x, dtype: FeedForward(C, 7, dtype=dtype)(x),
    "Conv1d": lambda x, dtype: Conv1d(C, 5, 3, dtype=dtype)(x),
    "LSTM": lambda x, dtype: LSTM(C, 3, dtype=dtype)(x),
    "GRU": lambda x, dtype: GRU(C, 3, dtype=dtype)(x),
    "SelfAttention": lambda x, dtype: SelfAttention(C, 3, dtype=dtype)(x),
    "CrossAttention": lambda x, dtype: CrossAttention(C, 3, dtype=dtype)(x, fitting(dtype)),
    "CrossAttention's memory": lambda x, dtype: CrossAttention(C, 3, dtype=dtype)(fitting(dtype), x),
    "MemoryAttention": lambda x, dtype: MemoryAttention("dot", C, dtype=dtype)(x, fitting(dtype)),
    "MemoryAttention's memory": lambda x, dtype: MemoryAttention("dot", C, dtype=dtype)(fitting(dtype), x),
    "PositionalEncoding": lambda x, dtype: PositionalEncoding(9, C, dtype=dtype)(x),
    "LearnedPositions": lambda x, dtype: LearnedPositions(9, C, dtype=dtype)(x),
    "RotaryPositions": lambda x, dtype: RotaryPositions(C, 9, dtype=dtype).rotate(x),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


def fitting(dtype, width=C):
    return device(np.zeros((B, T, width), dtype))


@every_layer
@pytest.mark.parametrize("width", [1, C + 1])  # a width of 1 would be broadcast by some
def test_a_wrong_width_is_refused_with_both_widths(name, width):
    with pytest.raises(ValueError, match=rf"takes an array of shape \(\.\.\., 6\), got \(2, 4, {width}\)"):
        LAYERS[name](fitting(np.float64, width), np.float64)


@every_layer
@pytest.mark.parametrize(("weights", "given"), [("float32", "float64"), ("float64", "float32"), ("float32", "int64")])
def test_an_input_of_another_dtype_is_refused_with_both_dtypes(name, weights, given):
    with pytest.raises(TypeError, match=f"weights of {weights} and cannot take an input of {given}"):
        LAYERS[name](fitting(given), weights)
