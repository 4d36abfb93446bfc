"""One attention layer of each kind in decoding: whatever the pieces, masks and positions, it is the layer of training.

Whole models decode single tokens in another way, so here the layer itself is asked.
"""

import tracemalloc

import numpy as np
import pytest

from minitransformer.config import Windowed
from minitransformer.functional import causal_mask
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import GeneralSelfAttention
from minitransformer.layers.attention import FullAttention
from minitransformer.layers.since_2017 import attention_kinds
from minitransformer.layers.since_2017.attention_kinds import (
    CausalAttention,
    IncrementalAttention,
    LinearAttention,
    TiledAttention,
)
from minitransformer.layers.since_2017.attention_positions import AlibiPositions, RelativePositions, RotaryPositions
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from tests.helpers import device, host, random_array, randomize, relative_error

B, H, T, D = 3, 4, 9, 2
C = H * D
F64 = {"dtype": np.float64}
KINDS = {
    "full": IncrementalAttention,
    "causal": CausalAttention,
    "tiled": lambda: TiledAttention(Pattern(causal=True)),
    "windowed": lambda: TiledAttention(Pattern(causal=True, window=3)),
    "global": lambda: TiledAttention(Pattern(causal=True, window=2, num_global=2)),
    "strided": lambda: TiledAttention(Pattern(causal=True, window=2, stride=3)),
    "linear": lambda: LinearAttention(causal=True),
}
POSITIONS = {
    "none": lambda: None,
    "rope": lambda: RotaryPositions(D, 12, **F64),
    "alibi": lambda: AlibiPositions(H, **F64),
    "relative": lambda: randomize(RelativePositions(H, bidirectional=False, num_buckets=6, max_distance=4, **F64), 1),
}
with_scores = [kind for kind in KINDS if kind != "linear"]
grouped = pytest.mark.parametrize(
    "num_kv_heads", [pytest.param(4, marks=pytest.mark.exhaustive), 2, pytest.param(1, marks=pytest.mark.weekly)]
)
PIECES = [[1] * T, [4, 1, 1, 3], [2, 5, 1, 1]]
MASKS = {
    "none": None,
    "padding": np.arange(T) >= np.array([0, 2, 4])[:, None, None, None],
    "padding of all alike": (np.arange(T) >= 3)[None, None, None],
    "pairs": np.random.default_rng(8).random((B, H, T, T)) < 0.7,
    "a sequence that may see nothing": np.array([True, False, True])[:, None, None, None],
}


@pytest.fixture(autouse=True)
def five_tokens_are_many(monkeypatch):
    """So causal attention reads the pieces of one sequence in both ways."""
    monkeypatch.setattr(attention_kinds, "LONG", 5)


def make(kind, num_kv_heads=2, positions="none", **options):
    options = {"num_kv_heads": num_kv_heads, "positions": POSITIONS[positions](), "kind": KINDS[kind](), **options}
    return randomize(GeneralSelfAttention(C, H, **options, **F64))


def example(rows=B):
    return random_array(np.random.default_rng(3), rows, T, C)


def masks(layer, mask):
    """From a mask that broadcasts to (B, H, T, T) or None, the one for `forward`, and a function for that of a piece.

    Full attention has to be told besides what lies in the future.
    """
    if layer.kind.needs_causal_mask:
        mask = host(causal_mask(T)) if mask is None else mask & host(causal_mask(T))
    if mask is None:
        return None, lambda start, end: None

    def of_piece(start, end):
        rows = mask if mask.shape[2] == 1 else mask[:, :, start:end]
        return device(rows if mask.shape[3] == 1 else rows[..., :end])

    return device(mask), of_piece


def in_pieces(layer, x, pieces, mask):
    """y of `extend` on one piece after the other; `mask(start, end)` is what it may see, or None."""
    kv_cache, start, y = layer.make_kv_cache(len(x), T), 0, []
    for count in pieces:
        end = start + count
        y.append(host(layer.extend(x[:, start:end], kv_cache, mask(start, end))))
        start = end
        assert kv_cache.length == end
    return np.concatenate(y, axis=1)


@grouped
@pytest.mark.parametrize(
    ("kind", "mask"),
    [(kind, mask) for kind in KINDS for mask in list(MASKS)[: 3 if kind == "linear" else None]],
)
def test_pieces_of_any_length_give_the_outputs_of_the_whole(kind, mask, num_kv_heads):
    layer, x = make(kind, num_kv_heads), example()
    allowed, of_piece = masks(layer, MASKS[mask])
    expected = layer(x, allowed)
    for pieces in PIECES:
        assert relative_error(in_pieces(layer, x, pieces, of_piece), expected) <= 1e-12, pieces


@pytest.mark.host_only  # there are no tiles on a GPU
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(("widths", "mask"), [({}, "none"), ({"num_kv_heads": 4, "d_k": 2, "d_v": 3}, "pairs")])
def test_causal_attention_to_many_tokens_is_full_attention(positions, widths, mask):
    layers = [make(kind, positions=positions, **widths) for kind in ("causal", "full")]
    x, dy = example(), random_array(np.random.default_rng(4), B, T, C)
    allowed, _ = masks(layers[0], MASKS[mask])
    (y, cache), (expected, full_cache) = (layer.forward(x, allowed) for layer in layers)
    assert type(cache.attention) is not type(full_cache.attention)
    assert relative_error(y, expected) <= 1e-12
    assert relative_error(layers[0].backward(dy, cache), layers[1].backward(dy, full_cache)) <= 1e-12
    for one, other in zip(*(layer.parameters() for layer in layers), strict=True):
        assert relative_error(one.grad, other.grad) <= 1e-12


@grouped
@pytest.mark.parametrize("kind", with_scores)
@pytest.mark.parametrize("positions", ["rope", "alibi", "relative"])
def test_positions_and_scale_are_those_of_the_whole(kind, positions, num_kv_heads):
    layer, x = make(kind, num_kv_heads, positions, scale=0.9), example()
    allowed, of_piece = masks(layer, None)
    expected = layer(x, allowed)
    for pieces in PIECES:
        assert relative_error(in_pieces(layer, x, pieces, of_piece), expected) <= 1e-12, pieces


@pytest.mark.parametrize("pieces", PIECES, ids=str)
def test_linear_attention_takes_the_mask_of_the_last_new_token(pieces):
    layer, x = make("linear"), example()
    allowed, _ = masks(layer, MASKS["padding"])
    pairs = MASKS["padding"] & host(causal_mask(T))
    got = in_pieces(layer, x, pieces, lambda start, end: device(pairs[:, :, start:end, :end]))
    assert relative_error(got, layer(x, allowed)) <= 1e-12


def test_cross_attention_is_in_tiles_unless_self_attention_is_full():
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": H, "d_ff": 5, "num_layers": 1}
    for attention in ("tiled", Windowed(2), "linear"):
        kind = builder(TransformerConfig(**sizes, attention=attention)).cross_attention().kind
        assert isinstance(kind, TiledAttention)
        assert kind.pattern == Pattern()
    assert type(builder(TransformerConfig(**sizes)).cross_attention().kind) is FullAttention


@pytest.mark.host_only  # what a GPU allocates is not traced
@pytest.mark.parametrize("positions", [AlibiPositions, RelativePositions])
def test_bias_in_tiles_needs_no_array_of_the_length_squared(positions):
    length, attention = 1024, TiledAttention(Pattern(causal=True, window=8))
    layer = GeneralSelfAttention(4, 2, positions=positions(2), kind=attention, rng=np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((1, length, 4)).astype(np.float32)
    tracemalloc.start()
    y, cache = layer.forward(x)
    layer.backward(y, cache)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * length**2  # bytes; the bias of all pairs would take 8 for each pair
