"""The KV cache: `extend` on the pieces of a sequence gives the same outputs as `forward` on the whole sequence.

They are equal up to rounding for any pieces, and bit for bit where both add in the same order.
"""

from functools import partial

import numpy as np
import pytest

from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers import CrossAttention, GeneralCrossAttention
from minitransformer.layers.since_2017.kv_cache import (
    KVCache,
    LinearAttentionState,
    RollingKVCache,
    extend_sublayer,
    read_memory,
)
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, H, C, D = 2, 5, 7, 3, 12, 4
MAX_LEN = 8  # more than needed
PIECES = [(1, 1, 1, 1, 1), (3, 2), (1, 4), (2, 1, 2), (5,)]

every_split = pytest.mark.parametrize("pieces", PIECES)


def empty_kv_cache(max_len=MAX_LEN):
    """A KV cache that is NaN where nothing has been written, so that a read there cannot go unnoticed."""
    kv_cache = KVCache((B, H, max_len, D), np.float64)
    kv_cache.k[...] = kv_cache.v[...] = np.nan
    return kv_cache


def memory_allowed():
    return padding_mask(device(np.array([[4, 9, 6, 0, 0, 0, 0], [2, 8, 1, 7, 5, 3, 0]])))


def in_pieces(extend, x, pieces):
    """y (B, T, C) of extend(new tokens, mask), called on one piece after the other."""
    mask, y, start = causal_mask(T), device(np.zeros((B, T, C), x.dtype)), 0
    for count in pieces:
        end = start + count
        y[:, start:end] = extend(x[:, start:end], mask[:, :, start:end, :end])
        start = end
    return y


def example(seed=40, dtype=np.float64):
    """x (B, T, C) and memory (B, S, C)."""
    rng = np.random.default_rng(seed)
    return random_array(rng, B, T, C, dtype=dtype), random_array(rng, B, S, C, dtype=dtype)


def test_append_returns_everything_appended_so_far_in_order():
    rng, kv_cache = np.random.default_rng(41), KVCache((B, H, 6, D), np.float64)
    k, v = random_array(rng, B, H, 6, D), random_array(rng, B, H, 6, D)
    for start, end in [(0, 1), (1, 4), (4, 6)]:
        keys, values = kv_cache.append(k[:, :, start:end], v[:, :, start:end])
        assert kv_cache.length == end
        assert same(keys, k[:, :, :end])
        assert same(values, v[:, :, :end])


@pytest.mark.parametrize(("count", "number"), [(2, 6), (9, 13)])
def test_appending_beyond_max_len_is_refused_and_changes_nothing(count, number):
    rng, kv_cache = np.random.default_rng(43), KVCache((B, H, 5, D), np.float64)
    keys, _ = kv_cache.append(*(random_array(rng, B, H, 4, D) for _ in range(2)))
    before = keys.copy()
    message = f"^the KV cache holds 5 positions, but {number} are needed$"
    with pytest.raises(ValueError, match=message):
        kv_cache.append(*(random_array(rng, B, H, count, D) for _ in range(2)))
    assert kv_cache.length == 4
    assert same(kv_cache.k[:, :, :4], before)
    last, _ = kv_cache.append(*(random_array(rng, B, H, 1, D) for _ in range(2)))  # what fits can still be appended
    assert same(last[:, :, :4], before)


@pytest.mark.parametrize("rows", [[1, 0], [1, 1, 0], [0], [1], [1, 1], [1, 0, 0, 1]])
def test_select_reorders_keys_and_values_and_keeps_max_len(rows):
    rng, kv_cache = np.random.default_rng(44), KVCache((B, H, 6, D), np.float64)
    k, v = random_array(rng, B, H, 2, D), random_array(rng, B, H, 2, D)
    kv_cache.append(k, v)
    kv_cache.select(device(np.array(rows)))
    k_new, v_new = (random_array(rng, len(rows), H, 4, D) for _ in range(2))
    keys, values = kv_cache.append(k_new, v_new)
    for got, old, new in ((keys, k, k_new), (values, v, v_new)):
        assert got.shape == (len(rows), H, 6, D)
        assert same(got[:, :, 2:], new)
        for i, row in enumerate(rows):
            assert same(got[i, :, :2], old[row])


@pytest.mark.parametrize("kind", [CrossAttention, GeneralCrossAttention, partial(GeneralCrossAttention, scale=1.0)])
@every_split
def test_cross_attention_in_pieces_equals_the_whole(pieces, kind):
    layer, (x, memory) = randomize(kind(C, H, dtype=np.float64)), example()
    kv_cache = read_memory(layer, memory)
    y = in_pieces(lambda new, _: extend_sublayer(layer, new, kv_cache, memory_allowed()), x, pieces)
    assert relative_error(y, layer(x, memory, memory_allowed())) <= 1e-12


def test_select_moves_rows_in_place_unless_there_are_more_than_before():
    for rows, moved in (([1, 0], True), ([1], True), ([1, 0, 0], False)):
        kv_cache = empty_kv_cache()
        before = kv_cache.k, kv_cache.v
        kv_cache.append(*(random_array(np.random.default_rng(45), B, H, 2, D) for _ in range(2)))
        kv_cache.select(device(np.array(rows)))
        for new, old in zip((kv_cache.k, kv_cache.v), before, strict=True):
            assert new.shape == (len(rows), H, MAX_LEN, D)
            new[0, 0, 0, 0] = 77.0
            assert (float(old[0, 0, 0, 0]) == 77.0) == moved


def test_nbytes_is_the_memory_of_keys_and_values():
    assert KVCache((B, H, 6, D), np.float32).nbytes == 2 * (B * H * 6 * D) * 4
    assert RollingKVCache((B, H, 6, D), np.float64, 5).nbytes == 2 * (B * H * 5 * D) * 8
    assert LinearAttentionState((B, H, 6, D), np.float64).nbytes == (B * H * D * (D + 1)) * 8


@pytest.mark.parametrize("window", [1, 2, 3, 20])
@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 1, 3], [2, 5, 1, 1], [9], [2, 2, 2, 2, 1]], ids=str)
def test_a_ring_buffer_says_which_keys_it_returns(window, pieces):
    k = device(np.arange(9.0)[:, None] + np.zeros((B, H, 9, 1)))  # each key is its own position
    kv_cache, start = RollingKVCache((B, H, 9, 1), np.float64, window), 0
    assert len(kv_cache.positions) == 0
    for count in pieces:
        now = slice(start, start + count)
        keys, values = kv_cache.append(k[:, :, now], -k[:, :, now])
        start += count
        positions = kv_cache.positions
        assert same(keys, np.broadcast_to(positions[:, None], keys.shape))
        assert same(values, -host(keys))
        # all in the window of any new token, and none before that of the first
        assert sorted(positions) == list(range(max(0, start - count - window + (count == 1)), start))


def test_a_ring_buffer_refuses_what_is_longer_than_the_text():
    kv_cache = RollingKVCache((B, H, 6, D), np.float64, 2)
    kv_cache.append(*(random_array(np.random.default_rng(46), B, H, 5, D) for _ in range(2)))
    with pytest.raises(ValueError, match="the KV cache holds 6 positions, but 7 are needed"):
        kv_cache.append(*(random_array(np.random.default_rng(46), B, H, 2, D) for _ in range(2)))
