"""Everything with a backward pass at drawn sizes: what `test_properties.py` asks its questions of.

A Subject is a function of arrays that have a gradient, inputs and parameters alike, with masks, ids and dropout fixed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.core import Parameter
from minitransformer.generators import make_generator
from minitransformer.gradcheck.cases.positions import Weights
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import device, protected, random_array, randomize


class Sizes(NamedTuple):
    """Drawn lengths of axes, each possibly 1, and two switches."""

    B: int
    T: int
    S: int
    H: int
    D: int
    F: int
    V: int
    rate: float  # of dropout
    share: float  # of the pairs that may attend; 0 leaves every row empty, None has no mask


class Subject(NamedTuple):
    """A differentiable function with its inputs, and the parameters to which its backward adds."""

    forward: Callable  # (*inputs) -> (y, cache), the same however often it is called
    backward: Callable  # (dy, cache) -> the inputs' gradients
    inputs: list
    parameters: list


def draw_mask(rng, n, t, s):
    """A boolean mask that is broadcastable to (B, H, t, s), along axes chosen by chance; or None."""
    if n.share is None:
        return None
    shape = [length if rng.random() < 0.5 else 1 for length in (n.B, n.H, t)] + [s]
    return protected(device(rng.random(shape) < n.share))


def draw_ids(rng, n, length):
    """Token ids (B, length) on the host from the whole vocabulary, padding = 0 included."""
    return protected(rng.integers(0, n.V, (n.B, length)))


def replayed():
    """A generator for dropout that always draws the same."""
    return make_generator(9)


def function(forward, backward, *inputs):
    """The Subject of a pair of pure functions."""
    return Subject(forward, backward, list(inputs), [])


def softmax(n, rng, dtype):
    allowed = draw_mask(rng, n, n.T, n.S)
    scores = random_array(rng, n.B, n.H, n.T, n.S, dtype=dtype)
    return function(lambda s: F.softmax(s, allowed), F.softmax_backward, scores)


def relu(n, rng, dtype):
    return function(F.relu, F.relu_backward, random_array(rng, n.B, n.T, n.F, dtype=dtype))


def smooth(name):
    """The subject of the activation `name`."""

    def make(n, rng, dtype):
        x = random_array(rng, n.B, n.T, n.F, dtype=dtype)
        return function(getattr(F, name), getattr(F, f"{name}_backward"), x)

    return make


def gated(name):
    """The subject of the gated activation `name`."""

    def make(n, rng, dtype):
        x = random_array(rng, n.B, n.T, 2 * n.F, dtype=dtype)
        return function(getattr(F, name), getattr(F, f"{name}_backward"), x)

    return make


def rms_norm(n, rng, dtype):
    inputs = (random_array(rng, *shape, dtype=dtype) for shape in ((n.B, n.T, n.F), (n.F,)))
    return function(F.rms_norm, F.rms_norm_backward, *inputs)


def linear(n, rng, dtype):
    shapes = (n.B, n.T, n.D), (n.D, n.F), (n.F,)
    return function(F.linear, F.linear_backward, *(random_array(rng, *shape, dtype=dtype) for shape in shapes))


def layer_norm(n, rng, dtype):
    shapes = (n.B, n.T, n.F), (n.F,), (n.F,)
    inputs = (random_array(rng, *shape, dtype=dtype) for shape in shapes)
    return function(F.layer_norm, F.layer_norm_backward, *inputs)


def dropout(n, rng, dtype):
    x = random_array(rng, n.B, n.T, n.F, dtype=dtype)
    return function(lambda x: F.dropout(x, n.rate, replayed()), F.dropout_backward, x)


def attention(n, rng, dtype):
    allowed = draw_mask(rng, n, n.T, n.S)
    inputs = (random_array(rng, n.B, n.H, length, n.D, dtype=dtype) for length in (n.T, n.S, n.S))

    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, allowed, n.rate, replayed())

    return function(forward, lambda dy, cache: F.scaled_dot_product_attention_backward(dy, cache)[:3], *inputs)


def cross_entropy(n, rng, dtype):
    targets, smoothing = device(draw_ids(rng, n, n.T)), float(rng.choice([0.0, 0.1]))
    logits = random_array(rng, n.B, n.T, n.V, dtype=dtype)
    return function(lambda z: F.cross_entropy(z, targets, smoothing), F.cross_entropy_backward, logits)


def embedding(n, rng, dtype):
    ids, E = draw_ids(rng, n, n.T), random_array(rng, n.V, n.F, dtype=dtype)

    def backward(dy, cache):
        dE = device(np.zeros((n.V, n.F), dtype))
        F.embedding_backward(dy, cache, dE)
        return dE

    return function(lambda E: F.embedding(ids, E, 1.5), backward, E)


def split_and_merge(n, rng, dtype):
    x = random_array(rng, n.B, n.T, n.H * n.D, dtype=dtype)
    scale = random_array(rng, n.H, 1, n.D, dtype=dtype)  # each head by its own numbers, so that heads can be told apart

    def forward(x):
        return F.merge_heads(F.split_heads(x, n.H) * scale), None

    return function(forward, lambda dy, _: F.merge_heads(F.split_heads(dy, n.H) * scale), x)


def rotate(n, rng, dtype):
    cos, sin = (device(table) for table in F.rotary_tables(n.T, 2 * n.D, dtype=dtype))
    x = random_array(rng, n.B, n.H, n.T, 2 * n.D, dtype=dtype)
    return function(lambda x: F.rotate(x, cos, sin), F.rotate_backward, x)


def relative_bias(n, rng, dtype):
    buckets, table = F.relative_buckets(n.T, n.S, 4, 3), random_array(rng, 4, n.H, dtype=dtype)

    def backward(dy, cache):
        dtable = device(np.zeros((4, n.H), dtype))
        F.relative_bias_backward(dy, cache, dtable)
        return dtable

    return function(lambda table: F.relative_bias(table, buckets), backward, table)


FUNCTIONS = {
    make.__name__: make
    for make in (
        softmax,
        relu,
        linear,
        layer_norm,
        dropout,
        attention,
        cross_entropy,
        embedding,
        split_and_merge,
        rms_norm,
        rotate,
        relative_bias,
    )
}
FUNCTIONS |= {name: smooth(name) for name in ("gelu", "gelu_tanh", "silu", "tanh")}
FUNCTIONS |= {name: gated(name) for name in ("geglu", "geglu_tanh", "swiglu")}


def of_layer(layer, inputs, *context):
    """The Subject of a layer with order-one parameters; `context` is what forward takes besides."""
    randomize(layer)

    def forward(*arrays):
        return layer.forward(*arrays, *context, rng=replayed())

    return Subject(forward, layer.backward, inputs, layer.parameters())


def config(n, norm):
    """A configuration of the drawn sizes; sinusoids need an even d_model."""
    rates = {"dropout": n.rate, "attention_dropout": n.rate, "ffn_dropout": n.rate}
    sizes = {"vocab_size": n.V, "d_model": 2 * n.H * n.D, "num_heads": n.H, "d_ff": n.F, "num_layers": 2}
    return TransformerConfig(**sizes, **rates, norm=norm, max_len=5)


def make_layer(name, n, rng, dtype, norm):
    """The Subject of the layer or model called `name`."""
    C, H, to = 2 * n.H * n.D, n.H, {"dtype": dtype}
    x, memory = (random_array(rng, n.B, length, C, dtype=dtype) for length in (n.T, n.S))
    heads = [random_array(rng, n.B, H, length, 2 * n.D, dtype=dtype) for length in (n.T, n.S)]
    masks = draw_mask(rng, n, n.T, n.T), draw_mask(rng, n, n.T, n.S)
    ids, table = draw_ids(rng, n, n.T), Parameter(np.zeros((n.V, C), dtype))
    noisy = {"dropout_rate": n.rate, "dtype": dtype}
    switches = config(n, norm)
    return {
        "Linear": lambda: of_layer(L.Linear(C, n.F, blocks=2, **to), [x]),
        "Linear without bias": lambda: of_layer(L.Linear(C, n.F, bias=False, **to), [x]),
        "LayerNorm": lambda: of_layer(L.LayerNorm(C, **to), [x]),
        "RMSNorm": lambda: of_layer(L.RMSNorm(C, **to), [x]),
        "Dropout": lambda: of_layer(L.Dropout(n.rate), [x]),
        "PositionalEncoding": lambda: of_layer(L.PositionalEncoding(5, C, **to), [x]),
        "LearnedPositions": lambda: of_layer(L.LearnedPositions(5, C, **to), [x]),
        "RotaryPositions": lambda: of_layer(Weights(L.RotaryPositions(2 * n.D, 5, **to), 0), heads),
        "AlibiPositions": lambda: of_layer(Weights(L.AlibiPositions(H, **to), 0), heads),
        "RelativePositions": lambda: of_layer(Weights(L.RelativePositions(H, **to), 0), heads),
        "Embedding": lambda: of_layer(L.Embedding(table), [], ids),
        "InputEmbedding": lambda: of_layer(L.InputEmbedding(table, L.PositionalEncoding(5, C, **to), n.rate), [], ids),
        "OutputProjection": lambda: of_layer(L.OutputProjection(table), [x]),
        "FeedForward": lambda: of_layer(L.FeedForward(C, n.F, **noisy), [x]),
        "SelfAttention": lambda: of_layer(L.SelfAttention(C, H, **noisy), [x], masks[0]),
        "CrossAttention": lambda: of_layer(L.CrossAttention(C, H, **noisy), [x, memory], masks[1]),
        "Residual": lambda: of_layer(
            L.Residual(L.CrossAttention(C, H, **noisy), C, norm=norm, **noisy), [x, memory], masks[1]
        ),
        "EncoderLayer": lambda: of_layer(L.EncoderLayer(switches, **to), [x], masks[0]),
        "Encoder": lambda: of_layer(L.Encoder(switches, **to), [x], masks[0]),
        "DecoderLayer": lambda: of_layer(L.DecoderLayer(switches, **to), [x, memory], *masks),
        "Decoder": lambda: of_layer(L.Decoder(switches, **to), [x, memory], *masks),
        "Transformer": lambda: of_layer(Transformer(switches, **to), [], draw_ids(rng, n, n.S), ids),
    }[name]()


PLAIN = (
    "Linear",
    "Linear without bias",
    "LayerNorm",
    "RMSNorm",
    "Dropout",
    "PositionalEncoding",
    "Embedding",
    "InputEmbedding",
)
PLAIN += ("OutputProjection", "FeedForward", "SelfAttention", "CrossAttention")
PLAIN += ("LearnedPositions", "RotaryPositions", "AlibiPositions", "RelativePositions")
NORMED = ("Residual", "EncoderLayer", "Encoder", "DecoderLayer", "Decoder", "Transformer")
LAYERS = {
    **{name: (name, "post") for name in PLAIN},
    **{f"{name}, {norm}-norm": (name, norm) for name in NORMED for norm in ("post", "pre")},
}


def make_subject(name, n, seed, dtype):
    """The Subject called `name` at the sizes `n`, which nobody may write to."""
    rng = np.random.default_rng(seed)
    if name in FUNCTIONS:
        return FUNCTIONS[name](n, rng, dtype)
    kind, norm = LAYERS[name]
    subject = make_layer(kind, n, rng, dtype, norm)
    for parameter in subject.parameters:
        protected(parameter.data)
    return subject
