"""The rows for the layers."""

from functools import partial

import numpy as np

from minitransformer import layers as L
from minitransformer.core import Parameter
from minitransformer.gradcheck.cases.registry import (
    D_FF,
    MASKS,
    B,
    C,
    H,
    S,
    T,
    V,
    draw,
    draw_ids,
    layer,
    mask,
    register,
)
from minitransformer.layers.feed_forward import ACTIVATIONS
from minitransformer.layers.residual import NORMS
from minitransformer.models.config import TransformerConfig

DROPOUT = 0.3
F64 = {"dtype": np.float64}
drawn = {"dropout_seed": 1}  # each forward of a check draws the same dropout


def config(dropout=0.0, **changes):
    """A small model with every axis of another length; `dropout` everywhere that it can be."""
    rates = {"dropout": dropout, "attention_dropout": dropout, "ffn_dropout": dropout}
    sizes = {"vocab_size": V, "d_model": C, "num_heads": H, "d_ff": D_FF, "num_layers": 2, "max_len": 9}
    return TransformerConfig(**sizes, **rates, **changes)


def table():
    """A matrix of token vectors; its values are drawn by the check."""
    return Parameter(np.zeros((V, C)))


def input_embedding(rate):
    """Tokens, positions and dropout."""
    return L.InputEmbedding(table(), L.PositionalEncoding(9, C, **F64), rate)


def residual(sublayer, rate, norm):
    """A residual connection around a new sub-layer of the class `sublayer`."""
    return L.Residual(sublayer(C, H, **F64), C, dropout_rate=rate, norm=norm, **F64)


x, memory, ids = draw(B, T, C), draw(B, S, C), draw_ids(B, T)
both, padded = mask("both", T, T), mask("padding", T, S)  # for scores (B, H, T, T) and (B, H, T, S)

linear, attend, across = (
    partial(cls, C, size, **F64) for cls, size in ((L.Linear, D_FF), (L.SelfAttention, H), (L.CrossAttention, H))
)
register("Linear", L.Linear, layer(linear, x))
register("Linear bias=False", L.Linear, layer(partial(linear, bias=False), x))
register("Linear blocks=3", L.Linear, layer(partial(linear, blocks=3), x))
register("LayerNorm", L.LayerNorm, layer(partial(L.LayerNorm, C, **F64), x))
register("RMSNorm", L.RMSNorm, layer(partial(L.RMSNorm, C, **F64), x))
register("PositionalEncoding", L.PositionalEncoding, layer(partial(L.PositionalEncoding, 9, C, **F64), x))
register("Embedding", L.Embedding, layer(lambda: L.Embedding(table()), context=(ids,)))
register("OutputProjection", L.OutputProjection, layer(lambda: L.OutputProjection(table()), x))
for rate in (0.0, DROPOUT):
    network = partial(L.FeedForward, C, D_FF, dropout_rate=rate, **F64)
    register(f"Dropout rate={rate}", L.Dropout, layer(partial(L.Dropout, rate), x, **drawn))
    register(f"FeedForward dropout={rate}", L.FeedForward, layer(network, x, **drawn))
    entry = layer(partial(input_embedding, rate), context=(ids,), **drawn)
    register(f"InputEmbedding dropout={rate}", L.InputEmbedding, entry)

for name in ACTIVATIONS:
    network = partial(L.FeedForward, C, D_FF, activation=name, dropout_rate=DROPOUT, **F64)
    for bias in (True, False) if name != "relu" else (False,):
        entry = layer(partial(network, bias=bias), x, **drawn)
        register(f"FeedForward activation={name} bias={bias}", L.FeedForward, entry)

for kind in MASKS:
    register(f"SelfAttention mask={kind}", L.SelfAttention, layer(attend, x, context=(mask(kind, T, T),)))
    check = layer(across, x, memory, context=(mask(kind, T, S),))
    register(f"CrossAttention mask={kind}", L.CrossAttention, check)
noisy = {"dropout_rate": DROPOUT}
register("SelfAttention dropout", L.SelfAttention, layer(partial(attend, **noisy), x, context=(both,), **drawn))
check = layer(partial(across, **noisy), x, memory, context=(padded,), **drawn)
register("CrossAttention dropout", L.CrossAttention, check)
register("SelfAttention T=1", L.SelfAttention, layer(attend, draw(B, 1, C)))
register("SelfAttention B=1", L.SelfAttention, layer(attend, draw(1, T, C)))

for norm in NORMS:
    for rate in (0.0, DROPOUT):
        switches = f"norm={norm} dropout={rate}"
        itself = layer(partial(residual, L.SelfAttention, rate, norm), x, context=(both,), **drawn)
        other = layer(partial(residual, L.CrossAttention, rate, norm), x, memory, context=(padded,), **drawn)
        register(f"Residual self {switches}", L.Residual, itself)
        register(f"Residual cross {switches}", L.Residual, other)
        for kind in MASKS if rate else ("both",):
            allowed = mask(kind, T, T)
            for stack in (L.EncoderLayer, L.Encoder):
                check = layer(partial(stack, config(rate, norm=norm), **F64), x, context=(allowed,), **drawn)
                register(f"{stack.__name__} {switches} mask={kind}", stack, check)
            for stack in (L.DecoderLayer, L.Decoder):
                build = partial(stack, config(rate, norm=norm), **F64)
                check = layer(build, x, memory, context=(allowed, padded), **drawn)
                register(f"{stack.__name__} {switches} mask={kind}", stack, check)

    modern = config(DROPOUT, norm=norm, normalization="rms", activation="swiglu", bias=False, norm_eps=0.1)
    for stack, inputs, masks in ((L.Encoder, (x,), (both,)), (L.Decoder, (x, memory), (both, padded))):
        check = layer(partial(stack, modern, **F64), *inputs, context=masks, **drawn)
        register(f"{stack.__name__} norm={norm} normalization=rms activation=swiglu bias=False", stack, check)
