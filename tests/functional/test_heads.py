"""Head h of token t gets the h-th run of features, and merging is both the inverse and the backward of splitting."""

import numpy as np
import pytest

from minitransformer.backend import xp
from minitransformer.functional import (
    group_heads,
    merge_heads,
    repeat_heads,
    repeat_heads_backward,
    split_heads,
    ungroup_heads,
)
from minitransformer.functional.heads import product_of_heads
from tests.helpers import device, host, random_array, same

B, T, H, D = 2, 4, 3, 5
G, SHARING, S = 2, 3, 7  # heads of keys, heads of queries for each of them, and the length of the keys


def test_split_heads_gives_head_h_the_h_th_run_of_features():
    x = random_array(np.random.default_rng(4), B, T, H * D)
    heads, x = host(split_heads(x, H)), host(x)
    assert heads.shape == (B, H, T, D)
    for b, h, t, d in np.ndindex(B, H, T, D):
        assert heads[b, h, t, d] == x[b, t, h * D + d]


def test_merge_heads_sets_the_heads_side_by_side():
    heads = random_array(np.random.default_rng(5), B, H, T, D)
    x, heads = host(merge_heads(heads)), host(heads)
    assert x.shape == (B, T, H * D)
    for b, h, t, d in np.ndindex(B, H, T, D):
        assert x[b, t, h * D + d] == heads[b, h, t, d]


def test_merge_heads_sets_parts_with_other_heads_and_features_side_by_side():
    rng = np.random.default_rng(6)
    parts = [random_array(rng, B, heads, T, features) for heads, features in ((H, D), (G, 2), (1, D))]
    expected = np.concatenate([host(merge_heads(part)) for part in parts], axis=-1)
    assert same(host(merge_heads(*parts)), expected)


@pytest.mark.host_only
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_product_of_heads_is_the_product_in_memory_as_merge_heads_wants_it(dtype):
    rng = np.random.default_rng(7)
    weights, v = random_array(rng, B, H, T, S, dtype=dtype), random_array(rng, B, H, S, D, dtype=dtype)
    y = product_of_heads(weights, v)
    assert same(host(y), host(weights @ v))
    assert same(host(product_of_heads(weights[0], v[0])), host(y[0]))
    assert xp.shares_memory(merge_heads(y), y)


def test_split_heads_is_a_view():
    x = device(np.zeros((B, T, H * D)))
    assert xp.shares_memory(split_heads(x, H), x)


def grouped(seed):
    """Queries and keys, where several heads of queries share one of keys."""
    rng = np.random.default_rng(seed)
    return random_array(rng, B, G * SHARING, T, D), random_array(rng, B, G, S, D)


@pytest.mark.parametrize(
    ("x", "q"), [((B, H, S, D), (B, H, T, D)), ((B, S, D), (B, H, T, D)), ((B, H, S, D), (B, T, D))]
)
def test_heads_are_not_copied_where_each_query_has_its_own_or_there_are_none(x, q):
    x, q = device(np.zeros(x)), device(np.zeros(q))
    assert repeat_heads(x, q) is x
    assert repeat_heads_backward(x, x.shape[-3:-2]) is x
    assert q.ndim == 3 or x.ndim == 3 or group_heads(q, x) is q


def test_the_queries_of_one_group_are_set_one_head_below_the_other():
    q, k = grouped(11)
    rows, q_host = host(group_heads(q, k)), host(q)
    assert rows.shape == (B, G, SHARING * T, D)
    for b, h, t in np.ndindex(B, G * SHARING, T):
        assert same(rows[b, h // SHARING, h % SHARING * T + t], q_host[b, h, t])
    assert same(ungroup_heads(group_heads(q, k), q), q)
