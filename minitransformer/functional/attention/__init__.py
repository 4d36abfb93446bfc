"""Attention of every kind: pairs of functions with the same signature, `(q, k, v, allowed, ...) -> (y, cache)`."""

from minitransformer.functional.attention.additive import additive_attention, additive_attention_backward
from minitransformer.functional.attention.full import (
    AttentionCache,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.functional.attention.linear import (
    LinearAttentionCache,
    elu_plus_one,
    elu_plus_one_backward,
    linear_attention,
    linear_attention_backward,
)
from minitransformer.functional.attention.patterns import BlockPattern, Pattern, ShiftedPattern
from minitransformer.functional.attention.tiled import tiled_attention, tiled_attention_backward
from minitransformer.functional.attention.tiles import TiledAttentionCache

__all__ = [
    "AttentionCache",
    "BlockPattern",
    "LinearAttentionCache",
    "Pattern",
    "ShiftedPattern",
    "TiledAttentionCache",
    "additive_attention",
    "additive_attention_backward",
    "elu_plus_one",
    "elu_plus_one_backward",
    "linear_attention",
    "linear_attention_backward",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "tiled_attention",
    "tiled_attention_backward",
]
