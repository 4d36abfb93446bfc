"""Multi-head attention equals the paper's per-head formula, within a sequence and from one to another."""

import itertools

import numpy as np
import pytest

from minitransformer.functional import causal_mask, dropout, padding_mask
from minitransformer.layers import CrossAttention, GeneralCrossAttention, GeneralSelfAttention, SelfAttention
from minitransformer.system.generators import make_generator
from tests.functional.test_attention import naive_attention
from tests.functional.test_linear import naive_linear
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, H, T, S, D = 2, 3, 4, 5, 6
C = H * D
TARGET = np.array([[5, 3, 8, 0], [7, 0, 0, 0]])  # 0 is padding
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 1, 7, 0]])
SELF_MASKS = {
    "no mask": lambda: None,
    "causal": lambda: causal_mask(T),
    "padding": lambda: padding_mask(device(TARGET)),
    "causal and padding": lambda: causal_mask(T) & padding_mask(device(TARGET)),
}
CROSS_MASKS = {"no mask": lambda: None, "padding": lambda: padding_mask(device(SOURCE))}


def naive_multi_head(x, memory, weights, num_heads, allowed, keep=None):
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(x W_i^Q, memory W_i^K, memory W_i^V) (section 3.2.2).

    x (B, T, C), memory (B, S, C); weights: four pairs W, b for Q, K, V and O, where the matrices of head i are the i-th
    run of columns; allowed and keep broadcastable to (B, H, T, S) or None. All are taken to the host.
    """
    x, memory = host(x), host(memory)
    weights = [(host(W), host(bias)) for W, bias in weights]
    shape = (len(x), num_heads, x.shape[1], memory.shape[1])
    allowed = np.broadcast_to(True if allowed is None else host(allowed), shape)
    keep = np.broadcast_to(1.0 if keep is None else host(keep), shape)
    *projections, (W_out, b_out) = weights
    y = np.zeros(x.shape)
    for b in range(len(x)):
        concatenated = [[] for _ in x[b]]
        for head in range(num_heads):
            q, k, v = (
                np.array([naive_linear(token, *of_head(head, num_heads, W, bias)) for token in tokens])
                for tokens, (W, bias) in zip((x[b], memory[b], memory[b]), projections, strict=True)
            )
            for t, output in enumerate(naive_attention(q, k, v, allowed[b, head], keep[b, head])):
                concatenated[t].extend(output)
        for t, features in enumerate(concatenated):
            y[b, t] = naive_linear(features, W_out, b_out)
    return y


def of_head(head, num_heads, W, b):
    """The run of columns of one head."""
    width = len(b) // num_heads
    run = slice(head * width, (head + 1) * width)
    return W[:, run], b[run]


def columns_of(linear, *widths):
    """The pairs W, b of the maps side by side in a Linear; the last takes the columns that are left."""
    ends = [0, *np.cumsum(widths), len(linear.b.data)]
    runs = [slice(start, end) for start, end in itertools.pairwise(ends)]
    return [(linear.W.data[:, run], linear.b.data[run]) for run in runs]


def self_attention_weights(layer):
    """The pairs for Q, K, V and O of a SelfAttention, whose W is W^Q | W^K | W^V."""
    width = (len(layer.qkv.b.data) - len(layer.output.W.data)) // 2  # of all queries, and of all keys
    return [*columns_of(layer.qkv, width, width), *columns_of(layer.output)]


def cross_attention_weights(layer):
    """The pairs for Q, K, V and O of a CrossAttention, which has W^Q apart and W^K | W^V."""
    return [*columns_of(layer.q), *columns_of(layer.kv, len(layer.q.b.data)), *columns_of(layer.output)]


def make(kind, rate=0.0):
    return randomize(kind(C, H, dropout_rate=rate, dtype=np.float64), scale=0.4)


def example():
    """x (B, T, C) and memory (B, S, C)."""
    rng = np.random.default_rng(28)
    return random_array(rng, B, T, C), random_array(rng, B, S, C)


@pytest.mark.parametrize("name", SELF_MASKS)
def test_self_attention_equals_the_per_head_formula(name):
    layer, (x, _), allowed = make(SelfAttention), example(), SELF_MASKS[name]()
    expected = naive_multi_head(x, x, self_attention_weights(layer), H, allowed)
    assert relative_error(layer(x, allowed), expected) <= 1e-12


@pytest.mark.parametrize("name", CROSS_MASKS)
def test_cross_attention_equals_the_per_head_formula(name):
    layer, (x, memory), allowed = make(CrossAttention), example(), CROSS_MASKS[name]()
    expected = naive_multi_head(x, memory, cross_attention_weights(layer), H, allowed)
    assert relative_error(layer(x, memory, allowed), expected) <= 1e-12


def test_dropout_acts_on_the_attention_weights():
    keep, _ = dropout(device(np.ones((B, H, T, T))), 0.4, make_generator(3))
    layer, (x, _), allowed = make(SelfAttention, rate=0.4), example(), causal_mask(T)
    weights = self_attention_weights(layer)
    with_dropout = layer(x, allowed, rng=make_generator(3))
    assert relative_error(with_dropout, naive_multi_head(x, x, weights, H, allowed, keep)) <= 1e-12
    assert relative_error(layer(x, allowed), naive_multi_head(x, x, weights, H, allowed)) <= 1e-12


def test_the_key_bias_has_no_gradient():
    (x, memory), dy = example(), random_array(np.random.default_rng(29), B, T, C)
    itself, across = make(SelfAttention), make(CrossAttention)
    itself.backward(dy, itself.forward(x, causal_mask(T))[1])
    across.backward(dy, across.forward(x, memory, padding_mask(device(SOURCE)))[1])
    query, key, value = np.split(host(itself.qkv.b.grad), 3)
    assert np.abs(key).max() <= 1e-14 * min(np.abs(query).max(), np.abs(value).max())
    query, (key, value) = host(across.q.b.grad), np.split(host(across.kv.b.grad), 2)
    assert np.abs(key).max() <= 1e-14 * min(np.abs(query).max(), np.abs(value).max())


def test_fully_masked_queries_give_the_output_bias_and_no_gradient_to_their_input():
    layer, (x, memory) = make(CrossAttention), example()
    nothing = device(np.zeros((1, 1, 1, S), dtype=bool))
    y, cache = layer.forward(x, memory, nothing)
    dx, dmemory = layer.backward(random_array(np.random.default_rng(30), B, T, C), cache)
    assert same(y, np.broadcast_to(host(layer.output.b.data), y.shape))
    assert (dx == 0).all()
    assert (dmemory == 0).all()


@pytest.mark.parametrize("kind", [GeneralSelfAttention, GeneralCrossAttention])
def test_heads_of_any_width_equal_the_per_head_formula(kind):
    heads, widths = 5, {"d_k": 3, "d_v": 4}  # which do not divide C
    layer, (x, memory) = randomize(kind(C, heads, **widths, dtype=np.float64), scale=0.4), example()
    itself = kind is GeneralSelfAttention
    weights = self_attention_weights(layer) if itself else cross_attention_weights(layer)
    context = (x if itself else memory,)
    expected = naive_multi_head(x, *context, weights, heads, None)
    assert relative_error(layer(x, *context[: not itself]), expected) <= 1e-12


def test_only_the_projection_has_biases_if_told_so():
    names = {name for name, _ in GeneralSelfAttention(C, H, bias=False, qkv_bias=True).named_parameters()}
    assert names == {"qkv.W", "qkv.b", "output.W"}


@pytest.mark.parametrize("length", [1, 4])
def test_shared_keys_are_keys_that_several_heads_have_alike(length):
    few = randomize(GeneralSelfAttention(8, 4, num_kv_heads=2, dtype=np.float64))
    many = SelfAttention(8, 4, dtype=np.float64)
    rng = np.random.default_rng(31)
    x, dy = random_array(rng, B, length, 8), random_array(rng, B, length, 8)
    # the columns of Q | K | V: heads of two features, and both heads of keys and values twice
    columns = [*range(8), 8, 9, 8, 9, 10, 11, 10, 11, 12, 13, 12, 13, 14, 15, 14, 15]
    many.qkv.W.data[...] = device(host(few.qkv.W.data)[:, columns])
    many.qkv.b.data[...] = device(host(few.qkv.b.data)[columns])
    many.output.W.data[...], many.output.b.data[...] = few.output.W.data, few.output.b.data
    (y, cache), (expected, expected_cache) = few.forward(x, causal_mask(length)), many.forward(x, causal_mask(length))
    assert relative_error(y, expected) <= 1e-13
    assert relative_error(few.backward(dy, cache), many.backward(dy, expected_cache)) <= 1e-13
    summed = np.zeros((8, 16))
    np.add.at(summed, (slice(None), columns), host(many.qkv.W.grad))
    assert relative_error(few.qkv.W.grad, summed) <= 1e-13
