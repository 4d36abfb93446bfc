"""The mathematics, as pairs of pure functions on arrays: `f(...) -> (y, cache)` and `f_backward(dy, cache) -> dx`.

Nothing here owns a parameter or keeps state. Everything that backward needs is in the cache that forward returns.
Letters used throughout: B batch, T target length, S source length, C = d_model, H heads, G heads of keys and values
(H in the paper), D = C / H, F = d_ff, V vocabulary, N all leading axes taken together. A gradient is named `d` + the
forward name and has its shape.
"""

from typing import TYPE_CHECKING

from minitransformer.functional.activations import relu, relu_backward
from minitransformer.functional.attention import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.functional.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.functional.dropout import dropout, dropout_backward
from minitransformer.functional.embedding import embedding, embedding_backward
from minitransformer.functional.heads import merge_heads, repeat_heads, repeat_heads_backward, split_heads
from minitransformer.functional.layer_norm import layer_norm, layer_norm_backward
from minitransformer.functional.linear import linear, linear_backward
from minitransformer.functional.positions import rows_from, sinusoidal_positions
from minitransformer.functional.softmax import softmax, softmax_backward
from minitransformer.lazy import importer

if TYPE_CHECKING:
    from minitransformer.functional.before_2017.additive import additive_attention, additive_attention_backward
    from minitransformer.functional.before_2017.convolution import conv1d, conv1d_backward
    from minitransformer.functional.before_2017.recurrent.gru import gru, gru_backward
    from minitransformer.functional.before_2017.recurrent.lstm import lstm, lstm_backward
    from minitransformer.functional.since_2017.activations import (
        geglu,
        geglu_backward,
        geglu_tanh,
        geglu_tanh_backward,
        gelu,
        gelu_backward,
        gelu_tanh,
        gelu_tanh_backward,
        glu,
        glu_backward,
        silu,
        silu_backward,
        swiglu,
        swiglu_backward,
        tanh,
        tanh_backward,
    )
    from minitransformer.functional.since_2017.alibi import alibi_bias, alibi_slopes
    from minitransformer.functional.since_2017.erf import erf
    from minitransformer.functional.since_2017.grouped import group_heads, ungroup_heads
    from minitransformer.functional.since_2017.linear_attention import (
        elu_plus_one,
        elu_plus_one_backward,
        linear_attention,
        linear_attention_backward,
    )
    from minitransformer.functional.since_2017.preferences import (
        dpo,
        dpo_backward,
        group_advantages,
        grpo,
        grpo_backward,
        token_log_probs,
        token_log_probs_backward,
    )
    from minitransformer.functional.since_2017.relative import relative_bias, relative_bias_backward, relative_buckets
    from minitransformer.functional.since_2017.rms_norm import rms_norm, rms_norm_backward
    from minitransformer.functional.since_2017.rotary import rotary_tables, rotate, rotate_backward
    from minitransformer.functional.since_2017.tiled import tiled_attention, tiled_attention_backward

__all__ = [
    "additive_attention",
    "additive_attention_backward",
    "alibi_bias",
    "alibi_slopes",
    "causal_mask",
    "conv1d",
    "conv1d_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "dpo",
    "dpo_backward",
    "dropout",
    "dropout_backward",
    "elu_plus_one",
    "elu_plus_one_backward",
    "embedding",
    "embedding_backward",
    "erf",
    "geglu",
    "geglu_backward",
    "geglu_tanh",
    "geglu_tanh_backward",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "glu",
    "glu_backward",
    "group_advantages",
    "group_heads",
    "grpo",
    "grpo_backward",
    "gru",
    "gru_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_attention",
    "linear_attention_backward",
    "linear_backward",
    "lstm",
    "lstm_backward",
    "merge_heads",
    "padding_mask",
    "relative_bias",
    "relative_bias_backward",
    "relative_buckets",
    "relu",
    "relu_backward",
    "repeat_heads",
    "repeat_heads_backward",
    "rms_norm",
    "rms_norm_backward",
    "rotary_tables",
    "rotate",
    "rotate_backward",
    "rows_from",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "silu",
    "silu_backward",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "swiglu",
    "swiglu_backward",
    "tanh",
    "tanh_backward",
    "tiled_attention",
    "tiled_attention_backward",
    "token_log_probs",
    "token_log_probs_backward",
    "ungroup_heads",
]

__getattr__ = importer(
    __name__,
    __all__,
    (
        "since_2017.activations",
        "since_2017.alibi",
        "before_2017.additive",
        "since_2017.linear_attention",
        "since_2017.tiled",
        "before_2017.convolution",
        "since_2017.erf",
        "since_2017.grouped",
        "since_2017.preferences",
        "before_2017.recurrent.gru",
        "before_2017.recurrent.lstm",
        "since_2017.relative",
        "since_2017.rms_norm",
        "since_2017.rotary",
    ),
)
