"""Every layer takes arrays of its own width and dtype, and what it can be made of; it says so of anything else."""

import math
import re

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import (
    GRU,
    LSTM,
    ActivatedConv1d,
    ActivatedFeedForward,
    AlibiPositions,
    Conv1d,
    CrossAttention,
    CrossEntropyLoss,
    Dropout,
    FeedForward,
    GeneralCrossAttention,
    GeneralSelfAttention,
    LayerNorm,
    LearnedPositions,
    Linear,
    MemoryAttention,
    MixtureOfExperts,
    OutputProjection,
    PositionalEncoding,
    RelativePositions,
    Residual,
    RMSNorm,
    RotaryPositions,
    SelfAttention,
)
from minitransformer.layers.since_2017.attention_kinds import LinearAttention, TiledAttention
from tests.helpers import device

B, T, C = 2, 4, 6
# a call of the layer, made for vectors of C numbers, with one array
LAYERS = {
    "Linear": lambda x, dtype: Linear(C, 5, dtype=dtype)(x),
    "LayerNorm": lambda x, dtype: LayerNorm(C, dtype=dtype)(x),
    "RMSNorm": lambda x, dtype: RMSNorm(C, dtype=dtype)(x),
    "OutputProjection": lambda x, dtype: OutputProjection(Parameter(np.zeros((7, C), dtype)))(x),
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


def linear_attention(**options):
    """Attention that has no single weights, with an option that would change them."""
    q = fitting(np.float64).reshape(B, 1, T, C)
    return LinearAttention(causal=True).forward(q, q, q, **options)


def state(*shapes):
    return tuple(device(np.zeros(shape, np.float32)) for shape in shapes)


def loss(targets):
    return CrossEntropyLoss().forward(device(np.zeros((*targets.shape, 5))), targets)


def residual(placement, norm_after=None):
    return Residual(Linear(C, C), LayerNorm(C), placement=placement, norm_after=norm_after)


NO_WEIGHTS = "no dropout on its weights, no bias and no scale"
REFUSED = [  # a call, and the words of its refusal
    *(
        refusal
        for kind in (GeneralSelfAttention, GeneralCrossAttention)
        for refusal in (
            (lambda kind=kind: kind(18, 4), "d_model = 18 and num_heads = 4"),
            (lambda kind=kind: kind(18, 0), "d_model = 18 and num_heads = 0"),
            (lambda kind=kind: kind(18, 3, num_kv_heads=2), "num_heads must be a multiple of num_kv_heads"),
            (lambda kind=kind: kind(18, 3, num_kv_heads=0), "num_kv_heads must be at least 1, got 0"),
            (lambda kind=kind: kind(18, 3, d_k=0), "d_k must be at least 1, got 0"),
            (
                lambda kind=kind: kind(18, 3, d_k=4, kind=TiledAttention(Pattern())),
                "d_k = 4 other than d_v = 6 needs full attention",
            ),
        )
    ),
    *((lambda kind=kind: kind(18, 4), "d_model = 18 and num_heads = 4") for kind in (SelfAttention, CrossAttention)),
    (lambda: linear_attention(dropout_rate=0.1), NO_WEIGHTS),
    (lambda: linear_attention(bias=np.zeros((1, T, T))), NO_WEIGHTS),
    (lambda: linear_attention(scale=1.0), NO_WEIGHTS),
    (lambda: AlibiPositions(0), "num_heads must be at least 1, got 0"),
    (lambda: RelativePositions(3, num_buckets=7), "must be even, got 7"),
    (lambda: RelativePositions(3, max_distance=8), "max_distance = 8"),
    (lambda: RotaryPositions(5, 9), "must be even, got 5"),
    (lambda: Linear(5, 7)(np.zeros(5, np.float32)), "(5,)"),
    (lambda: Conv1d(C, C, 0), "kernel_size must be at least 1, got 0"),
    (lambda: Conv1d(C, C, 3, dilation=0), "dilation must be at least 1, got 0"),
    (lambda: Conv1d(C, C, 3, causal=1), "causal must be True or False, got 1"),
    (lambda: ActivatedConv1d(C, 3, activation="gelu"), "activation must be one of relu, glu, got 'gelu'"),
    (lambda: ActivatedFeedForward(C, 7, activation="tanh"), "activation must be one of relu, "),
    (lambda: MemoryAttention("concat", C), "kind must be one of additive, dot, general, got 'concat'"),
    (lambda: residual("middle"), "placement must be one of post, pre, sandwich, got 'middle'"),
    (lambda: residual("sandwich"), "placement='sandwich' needs norm_after"),
    (lambda: residual("pre", LayerNorm(C)), "placement='pre' has no norm_after"),
    (lambda: MixtureOfExperts(Linear(C, 2), [], scores="max"), "scores must be one of softmax, sigmoid, got 'max'"),
    *((lambda rate=rate: Dropout(rate), "dropout rate must be at least 0 and less than 1") for rate in (-0.1, 1.0)),
    *(
        (lambda size=size: LSTM(**{"input_size": C, "hidden_size": 2, size: 0}), f"{size} must be at least 1, got 0")
        for size in ("input_size", "hidden_size", "num_layers")
    ),
    (lambda: LSTM(C, 2)(fitting("float32"), state((1, B, 2))), "the state must be (h, c), got 1 arrays"),
    (lambda: GRU(C, 2)(fitting("float32"), state((1, B, 2), (1, B, 2))), "the state must be (h), got 2 arrays"),
    (lambda: GRU(C, 2, num_layers=3)(fitting("float32"), state((2, B, 2))), "h must be of shape (3, 2, 2), got (2, 2,"),
    *(
        (lambda rate=rate: CrossEntropyLoss(rate), "label_smoothing must be at least 0 and less than 1")
        for rate in (-0.1, 1.0, math.nan)
    ),
    (lambda: loss(np.full((2, 3), 5)), "targets has the token id 5"),
    (lambda: loss(np.full((2, 3), -1)), "targets has the token id -1"),
    (lambda: loss(np.zeros((0, 3), int)), "targets is empty"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[f"{i}: {row[1][:40]}" for i, row in enumerate(REFUSED)])
def test_what_no_layer_can_be_made_of_or_take_is_refused_by_its_name(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=re.escape(message)):
        call()
