"""Where a token stands: the layers that add it to the token's vector, and all the ways there are, by name.

Those that act inside attention are in attention_positions.py.
"""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_choice, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import rows_from, sinusoidal_positions
from minitransformer.layers.attention_positions import AlibiPositions, RelativePositions, RotaryPositions
from minitransformer.layers.initializers import normal

POSITIONS = {
    "sinusoidal": "fixed sines and cosines are added to the input: the paper",
    "learned": "a learnt vector for each position is added to the input: GPT-2, BERT",
    "relative": "a learnt number for each distance is added to the scores: T5",
    "rope": "queries and keys are turned by angles: LLaMA, GPT-NeoX",
    "alibi": "scores fall in a straight line with distance: BLOOM, MPT",
    "none": "nothing says where a token stands, but for a causal mask",
}


class PositionalEncoding(Layer):
    """y[b, t] = x[b, t] + PE[t] with the fixed sinusoids of paper section 3.5; it learns nothing.

    Raises ValueError for a sequence longer than `max_len`.
    """

    def __init__(self, max_len, d_model, *, dtype=np.float32):
        self.table = to_device(sinusoidal_positions(max_len, d_model, dtype))  # (max_len, C)

    def forward(self, x, rng=None, start=0):
        """x (B, T, C), the first token at position `start`, a number or one for each sequence (B,) -> y (B, T, C).

        Remember nothing: the derivative of a sum with a constant is 1.
        """
        check_width("PositionalEncoding", x, self.table.shape[1], self.table.dtype)
        return x + rows_from(self.table, start, x.shape[1]), None

    def backward(self, dy, cache):
        """dx = dy."""
        return dy


class LearnedPositions(Layer):
    """y[b, t] = x[b, t] + P[t] with a learnt P (max_len, C): GPT-2, BERT, and row (E) of the paper's table 3.

    It starts normal with standard deviation `std`, which should be near that of the token vectors: 0.02 in GPT-2 and
    BERT, 1 where they are multiplied by sqrt(C). Raises ValueError for a sequence longer than `max_len`.
    """

    def __init__(self, max_len, d_model, *, std=0.02, rng=None, dtype=np.float32):
        self.P = Parameter(normal(rng, (max_len, d_model), std, dtype))

    def forward(self, x, rng=None, start=0):
        """x (B, T, C), the first token at position `start` -> y (B, T, C). Remember which positions they were.

        For decoding, `start` may be one number for each sequence (B,).
        """
        P = self.P.data
        check_width("LearnedPositions", x, P.shape[1], P.dtype)
        return x + rows_from(P, start, x.shape[1]), start

    def backward(self, dy, start):
        """dx = dy, and dP[t] = sum_b dy[b, t], as every sequence of the batch has used P[t]."""
        _, T, _ = dy.shape
        self.P.grad[start : start + T] += dy.sum(axis=0)
        return dy


def make_input_positions(kind, max_len, d_model, *, std=0.02, rng=None, dtype=np.float32):
    """What a model with positions of one of the POSITIONS adds to its input: a layer, or None.

    `std` is the size of learned positions to start with. Raises ValueError for another `kind`.
    """
    check_choice("positions", kind, POSITIONS)
    if kind == "sinusoidal":
        return PositionalEncoding(max_len, d_model, dtype=dtype)
    if kind == "learned":
        return LearnedPositions(max_len, d_model, std=std, rng=rng, dtype=dtype)
    return None


def make_attention_positions(
    kind,
    num_heads,
    head_width,
    max_len,
    *,
    bidirectional=True,
    rng=None,
    dtype=np.float32,
):
    """What positions of one of the POSITIONS do inside attention: an AttentionPositions, or None.

    `bidirectional` says whether queries see keys behind them, as they do in an encoder. Only T5's buckets ask.
    """
    check_choice("positions", kind, POSITIONS)
    if kind == "rope":
        return RotaryPositions(head_width, max_len, dtype=dtype)
    if kind == "alibi":
        return AlibiPositions(num_heads, dtype=dtype)
    if kind == "relative":
        return RelativePositions(num_heads, bidirectional=bidirectional, rng=rng, dtype=dtype)
    return None
