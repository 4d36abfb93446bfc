"""The rows for the layers."""

import itertools
import math
from typing import Any

import numpy as np

from minitransformer import layers as L
from minitransformer.config import NORMS, Strided, TransformerConfig, Windowed
from minitransformer.core import Layer, Parameter
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.gradcheck.subjects.table import MASKS, ODD_MASKS, Draw, Problem, Sizes, layer_problem, register
from minitransformer.inspection.interventions import Altered, AlteredRows, Change, Rows
from minitransformer.layers.since_2017.qk_norm import NormalizedProjection
from minitransformer.models.build import builder

DROPOUT = 0.3
NORM_KINDS: tuple[Any, ...] = (L.LayerNorm, L.RMSNorm)
HEAD_KINDS: tuple[Any, ...] = (L.SelfAttention, L.CrossAttention)


def config(n: Sizes, dropout: float = 0.0, **changes: Any) -> TransformerConfig:
    """A model of these sizes with two layers; `dropout` everywhere that it can be."""
    return TransformerConfig(
        vocab_size=n.V,
        d_model=n.C,
        num_heads=n.H,
        d_ff=n.F,
        max_len=n.max_len,
        dropout=dropout,
        **{"num_layers": 2, "attention_dropout": dropout, "ffn_dropout": dropout, **changes},
    )


def token_matrix(d: Draw) -> Parameter:
    """Token vectors (V, C), to be drawn later."""
    return Parameter(np.zeros((d.n.V, d.n.C), d.dtype))


def target(d: Draw) -> dict[str, np.ndarray]:
    """The input of most layers."""
    return {"x": d("BTC")}


def target_and_memory(d: Draw) -> dict[str, np.ndarray]:
    """The inputs of everything with cross-attention."""
    return {"x": d("BTC"), "memory": d("BSC")}


def linear(d: Draw, bias: bool = True, blocks: int = 1) -> Problem:
    """C to F features, in several blocks if asked."""
    return layer_problem(L.Linear(d.n.C, d.n.F, bias=bias, blocks=blocks, dtype=d.dtype), d, target(d))


def lora(d: Draw) -> Problem:
    """C to F features, with an addition of rank 2. W and b are frozen."""
    linear = L.Linear(d.n.C, d.n.F, rng=d.rng, dtype=d.dtype)
    return layer_problem(L.LoRALinear(linear, rank=min(2, d.n.C, d.n.F), alpha=3.0), d, target(d))


def normalization(d: Draw, kind: type[Any], eps: float = 1e-5) -> Problem:
    """LayerNorm or RMSNorm."""
    return layer_problem(kind(d.n.C, eps=eps, dtype=d.dtype), d, target(d))


def positional_encoding(d: Draw) -> Problem:
    """Sinusoids, added to the input."""
    return layer_problem(L.PositionalEncoding(d.n.max_len, d.n.C, dtype=d.dtype), d, target(d))


def embedding(d: Draw) -> Problem:
    """Token ids to vectors."""
    return layer_problem(L.Embedding(token_matrix(d)), d, {}, {"ids": d.ids(d.n.T, padded=True)})


def input_embedding(d: Draw, dropout: float) -> Problem:
    """Token vectors, positions and dropout."""
    positions = L.PositionalEncoding(d.n.max_len, d.n.C, dtype=d.dtype)
    layer = L.InputEmbedding(token_matrix(d), positions, dropout)
    return layer_problem(layer, d, {}, {"ids": d.ids(d.n.T, padded=True)})


def output_projection(d: Draw) -> Problem:
    """Vectors to logits."""
    return layer_problem(L.OutputProjection(token_matrix(d)), d, target(d))


def dropout_layer(d: Draw, dropout: float) -> Problem:
    """Dropout of single entries."""
    return layer_problem(L.Dropout(dropout), d, target(d))


def feed_forward(d: Draw, kind: type[Any], dropout: float, **options: Any) -> Problem:
    """Two matrices with an activation between them."""
    return layer_problem(kind(d.n.C, d.n.F, dropout_rate=dropout, dtype=d.dtype, **options), d, target(d))


def experts(d: Draw, k: int, **options: Any) -> Problem:
    """S networks with a router, of which each token uses k. The auxiliary losses are not in y, so they are off."""
    router = L.Linear(d.n.C, d.n.S, bias=False, dtype=d.dtype)
    networks = [L.FeedForward(d.n.C, d.n.F, dtype=d.dtype) for _ in range(d.n.S)]
    layer = L.MixtureOfExperts(router, networks, experts_per_token=min(k, d.n.S), balance_weight=0.0, **options)
    return layer_problem(layer, d, target(d))


def multi_head(
    d: Draw,
    kind: type[Any],
    mask: str = "none",
    dropout: float = 0.0,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
) -> Problem:
    """Multi-head attention of a sequence to itself, or of the target to the memory."""
    options: dict[str, Any] = {"dropout_rate": dropout, "dtype": d.dtype}
    if num_kv_heads is not None:
        options |= {"num_kv_heads": math.gcd(num_kv_heads, d.n.H), "d_k": d_k}
    layer = kind(d.n.C, d.n.H, **options)
    cross = isinstance(layer, L.CrossAttention)
    inputs = target_and_memory(d) if cross else target(d)
    return layer_problem(layer, d, inputs, {"allowed": d.mask(mask, d.n.T, d.n.S if cross else d.n.T)})


def normalized_projection(d: Draw) -> Problem:
    """Queries, keys and values of H, G = 2 and 2 heads, whose queries and keys are normalized."""
    H, D = d.n.H, d.n.D
    widths = H * (D + 1), 2 * (D + 1), 2 * D
    linear = L.Linear(d.n.C, sum(widths), dtype=d.dtype)
    return layer_problem(NormalizedProjection(linear, widths, D + 1, eps=0.1, dtype=d.dtype), d, target(d))


def altered(d: Draw, output: bool) -> Problem:
    """A layer with two inputs whose last head, or the same part of whose output, is scaled and shifted."""
    B, H, D = d.n.B, d.n.H, d.n.D
    change = Change("", np.zeros((B, 1, D)), np.zeros(D), (H - 1, H), output)
    layer = Altered(L.CrossAttention(d.n.C, H, dtype=d.dtype), change, d.dtype)
    constants = {"allowed": d.mask("padding", d.n.T, d.n.S)}
    return layer_problem(layer, d, target_and_memory(d), constants)


def altered_rows(d: Draw, shared: bool, dropout: float, num_kv_heads: int) -> Problem:
    """Self-attention in which some queries have given weights, each its own or all of them the same ones."""
    B, T, H = d.n.B, d.n.T, d.n.H
    options: dict[str, Any] = {"num_kv_heads": math.gcd(num_kv_heads, H), "dropout_rate": dropout, "dtype": d.dtype}
    layer = L.GeneralSelfAttention(d.n.C, H, **options)
    rows = Rows("", np.zeros((1, T) if shared else (H, T, T)), d.rng.random((B, H, T)) < 0.5)
    layer.kind = AlteredRows(layer.kind, rows, d.dtype)
    return layer_problem(layer, d, target(d), {"allowed": d.mask("both", T, T)})


def residual(d: Draw, kind: type[Any], norm: str, dropout: float) -> Problem:
    """A residual connection around a sub-layer with one input or two."""
    T, C = d.n.T, d.n.C
    after = L.LayerNorm(C, dtype=d.dtype) if norm == "sandwich" else None
    options: dict[str, Any] = {"dropout_rate": dropout, "placement": norm, "norm_after": after}
    layer = L.Residual(kind(C, d.n.H, dtype=d.dtype), L.LayerNorm(C, dtype=d.dtype), **options)
    if kind is L.CrossAttention:
        return layer_problem(layer, d, target_and_memory(d), {"allowed": d.mask("padding", T, d.n.S)})
    return layer_problem(layer, d, target(d), {"allowed": d.mask("both", T, T)})


def encoder(d: Draw, kind: type[Layer], mask: str, **switches: Any) -> Problem:
    """An EncoderLayer or an Encoder; `switches` are fields of the configuration."""
    build = builder(config(d.n, **switches), dtype=d.dtype)
    layer = build.encoder() if kind is L.Encoder else build.encoder_layer()
    return layer_problem(layer, d, target(d), {"allowed": d.mask(mask, d.n.T, d.n.T)})


def decoder(d: Draw, kind: type[Layer], mask: str, **switches: Any) -> Problem:
    """A DecoderLayer or a Decoder under a mask, with a padded memory; `switches` are fields of the configuration."""
    build = builder(config(d.n, **switches), dtype=d.dtype)
    layer = build.decoder() if kind is L.Decoder else build.decoder_layer()
    masks = {"allowed": d.mask(mask, d.n.T, d.n.T), "memory_allowed": d.mask("padding", d.n.T, d.n.S)}
    return layer_problem(layer, d, target_and_memory(d), masks)


def recomputed(d: Draw, decoder: bool) -> Problem:
    """An encoder or decoder layer with dropout, which backward computes a second time."""
    build = builder(config(d.n, DROPOUT), dtype=d.dtype)
    layer = L.Recomputed(build.decoder_layer() if decoder else build.encoder_layer())
    inputs = target_and_memory(d) if decoder else target(d)
    return layer_problem(layer, d, inputs, {"allowed": d.mask("both", d.n.T, d.n.T)})


register("Linear", L.Linear, linear)
register("LoRALinear", L.LoRALinear, lora)
register("Linear bias=False", L.Linear, linear, bias=False)
register("Linear blocks=3", L.Linear, linear, blocks=3)
for kind in NORM_KINDS:
    register(kind.__name__, kind, normalization, kind=kind)
    register(f"{kind.__name__} eps=0.3", kind, normalization, kind=kind, eps=0.3)
register("PositionalEncoding", L.PositionalEncoding, positional_encoding)
register("Embedding", L.Embedding, embedding)
register("OutputProjection", L.OutputProjection, output_projection)
for rate in (0.0, DROPOUT):
    register(f"Dropout rate={rate}", L.Dropout, dropout_layer, dropout=rate)
    register(f"FeedForward dropout={rate}", L.FeedForward, feed_forward, kind=L.FeedForward, dropout=rate)
    register(f"InputEmbedding dropout={rate}", L.InputEmbedding, input_embedding, dropout=rate)

register("FeedForward bias=False", L.FeedForward, feed_forward, kind=L.FeedForward, dropout=DROPOUT, bias=False)
for name, bias in itertools.product(ACTIVATIONS, (True, False)):
    row, kind = f"ActivatedFeedForward activation={name} bias={bias}", L.ActivatedFeedForward
    register(row, kind, feed_forward, kind=kind, dropout=DROPOUT, activation=name, bias=bias)

for scores, renormalize, k in itertools.product(("softmax", "sigmoid"), (True, False), (1, 2)):
    row = f"MixtureOfExperts scores={scores} renormalize={renormalize} k={k}"
    register(row, L.MixtureOfExperts, experts, scores=scores, renormalize=renormalize, k=k)

for mask, kind in itertools.product((*MASKS, *ODD_MASKS), HEAD_KINDS):
    register(f"{kind.__name__} mask={mask}", kind, multi_head, kind=kind, mask=mask)
register("SelfAttention dropout", L.SelfAttention, multi_head, kind=L.SelfAttention, mask="both", dropout=DROPOUT)
register("CrossAttention dropout", L.CrossAttention, multi_head, kind=L.CrossAttention, mask="padding", dropout=DROPOUT)
register("SelfAttention T=1", L.SelfAttention, multi_head, kind=L.SelfAttention, lengths={"T": 1})
register("SelfAttention B=1", L.SelfAttention, multi_head, kind=L.SelfAttention, lengths={"B": 1})

GENERAL: tuple[Any, ...] = (L.GeneralSelfAttention, L.GeneralCrossAttention)
for groups, widths, kind in itertools.product((1, 2), ({}, {"d_k": 5}), GENERAL):
    row = f"{kind.__name__} {'d_k=5 ' if widths else ''}num_kv_heads={groups}"
    grouped: dict[str, Any] = {"lengths": {"H": 4, "D": 2}, "mask": "padding", "num_kv_heads": groups, **widths}
    register(row, kind, multi_head, kind=kind, **grouped)

register("NormalizedProjection", NormalizedProjection, normalized_projection)

for output in (True, False):
    register(f"Altered output={output}", Altered, altered, output=output)
for shared in (True, False):
    rows: dict[str, Any] = {"lengths": {"H": 4, "D": 2}, "shared": shared, "dropout": DROPOUT, "num_kv_heads": 2}
    register(f"AlteredRows shared={shared}", AlteredRows, altered_rows, **rows)

ATTENTION_KINDS: dict[str, dict[str, Any]] = {  # every kind but the full one, as fields of a configuration
    "tiled": {"attention": "tiled"},
    "windowed": {"attention": Windowed(2)},
    "global": {"attention": Windowed(2, num_global=1)},
    "strided": {"attention": Strided(1, stride=2)},
    "linear": {"attention": "linear", "attention_dropout": 0.0},
}
STACKS = [(L.EncoderLayer, encoder), (L.Encoder, encoder), (L.DecoderLayer, decoder), (L.Decoder, decoder)]
MODERN: dict[str, Any] = {"normalization": "rms", "activation": "swiglu", "bias": False, "norm_eps": 0.1}
for norm in NORMS:
    for rate in (0.0, DROPOUT):
        switches: dict[str, Any] = {"norm": norm, "dropout": rate}
        register(f"Residual self norm={norm} dropout={rate}", L.Residual, residual, kind=L.SelfAttention, **switches)
        register(f"Residual cross norm={norm} dropout={rate}", L.Residual, residual, kind=L.CrossAttention, **switches)
        masks = ("both",) if norm == "sandwich" or not rate else MASKS
        for mask, (kind, make) in itertools.product(masks, STACKS if rate or norm != "sandwich" else ()):
            row = f"{kind.__name__} norm={norm} dropout={rate} mask={mask}"
            register(row, kind, make, stack=True, kind=kind, mask=mask, **switches)
    for kind, make in STACKS[1::2] if norm != "sandwich" else ():
        row = f"{kind.__name__} norm={norm} normalization=rms activation=swiglu bias=False"
        register(row, kind, make, stack=True, kind=kind, mask="both", norm=norm, dropout=DROPOUT, **MODERN)
for decodes in (False, True):
    register(f"Recomputed decoder={decodes}", L.Recomputed, recomputed, stack=True, decoder=decodes)
for kind, fields in ATTENTION_KINDS.items():
    fields = {"stack": True, "dropout": DROPOUT, "mask": "padding", **fields}
    register(f"Encoder attention={kind}", L.Encoder, encoder, kind=L.Encoder, **fields)
    register(f"Decoder attention={kind}", L.Decoder, decoder, kind=L.Decoder, **fields)
register(
    "EncoderLayer activation=gelu norm_eps=0.1",
    L.EncoderLayer,
    encoder,
    stack=True,
    kind=L.EncoderLayer,
    mask="padding",
    activation="gelu",
    norm_eps=0.1,
)
