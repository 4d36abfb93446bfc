"""Head h of token t gets the h-th run of features, and merging is both the inverse and the backward of splitting."""

import numpy as np
import pytest

from minitransformer.backend import xp
from minitransformer.functional import merge_heads, split_heads
from tests.helpers import device, host, random_array, same

B, T, H, D = 2, 4, 3, 5


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


def test_merging_undoes_splitting():
    x = random_array(np.random.default_rng(6), B, T, H * D)
    assert same(merge_heads(split_heads(x, H)), x)


def test_split_heads_is_a_view():
    x = device(np.zeros((B, T, H * D)))
    assert xp.shares_memory(split_heads(x, H), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splitting_and_merging_keep_the_dtype(dtype):
    x = random_array(np.random.default_rng(8), B, T, H * D, dtype=dtype)
    assert split_heads(x, H).dtype == merge_heads(split_heads(x, H)).dtype == dtype
