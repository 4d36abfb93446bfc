"""Multi-head attention is its maps around attention, within a sequence and from one to another.

That the paper's layers are PyTorch's, under all masks, is shown by tests/oracle.
"""

import numpy as np
import pytest

from minitransformer.functional import causal_mask, merge_heads, padding_mask, scaled_dot_product_attention, split_heads
from minitransformer.layers import CrossAttention, GeneralCrossAttention, GeneralSelfAttention, SelfAttention
from minitransformer.system.generators import make_generator
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, H, T, S, D = 2, 3, 4, 5, 6
C = H * D
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 1, 7, 0]])


def make(kind, rate=0.0):
    return randomize(kind(C, H, dropout_rate=rate, dtype=np.float64), scale=0.4)


def example():
    """x (B, T, C) and memory (B, S, C)."""
    rng = np.random.default_rng(28)
    return random_array(rng, B, T, C), random_array(rng, B, S, C)


@pytest.mark.parametrize("kind", [GeneralSelfAttention, GeneralCrossAttention])
def test_each_head_attends_with_its_columns_and_dropout_acts_on_the_weights(kind):
    heads, d_k, d_v = 5, 3, 4  # which do not divide C
    layer = randomize(kind(C, heads, d_k=d_k, d_v=d_v, dropout_rate=0.4, dtype=np.float64), scale=0.4)
    x, memory = example()
    context = () if kind is GeneralSelfAttention else (memory,)
    maps = [layer.qkv(x)] if kind is GeneralSelfAttention else [layer.q(x), layer.kv(memory)]
    ends = np.cumsum([heads * d_k] * 2) if kind is GeneralSelfAttention else [heads * d_k]
    parts = [*maps[:-1], *np.split(host(maps[-1]), ends, axis=-1)]
    q, k, v = (split_heads(device(host(part).copy()), heads) for part in parts)
    for given in (None, 3):
        y, _ = scaled_dot_product_attention(q, k, v, None, 0.4, make_generator(given) if given else None)
        got = layer(x, *context, rng=make_generator(given) if given else None)
        assert relative_error(got, layer.output(merge_heads(y))) <= 1e-13


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
