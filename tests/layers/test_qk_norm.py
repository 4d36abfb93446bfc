"""QK-norm: each head's query and key have mean square 1, times a gain that all heads share, before RoPE turns them."""

from types import SimpleNamespace

from support.tensor_parallel import ShardedAttention

import numpy as np
import pytest

from minitransformer.functional import rms_norm, split_heads
from minitransformer.layers import Linear
from minitransformer.layers.since_2017.qk_norm import NormalizedProjection
from minitransformer.models import GPT, gpt_config
from tests.helpers import device, host, random_array, randomize, relative_error

B, T, C, H, G, D_K, D_V = 2, 3, 10, 4, 2, 6, 5
WIDTHS = (H * D_K, G * D_K, G * D_V)
EPS = 0.2


def make():
    return randomize(NormalizedProjection(Linear(C, sum(WIDTHS), dtype=np.float64), WIDTHS, D_K, eps=EPS, dtype="f8"))


def test_every_head_of_queries_and_keys_is_normalized_and_values_are_not():
    layer, x = make(), random_array(np.random.default_rng(3), B, T, C)
    y, plain = host(layer(x)), host(layer.projection(x))
    heads = [(layer.q_norm, slice(D_K * i, D_K * (i + 1))) for i in range(H)]
    heads += [(layer.k_norm, slice(D_K * i, D_K * (i + 1))) for i in range(H, H + G)]
    for norm, columns in heads:
        for b, t in np.ndindex(B, T):
            expected, _ = rms_norm(device(plain[b, t, columns]), norm.gamma.data, EPS)
            assert relative_error(y[b, t, columns], expected) <= 1e-13
    assert np.array_equal(y[..., -G * D_V :], plain[..., -G * D_V :])


def test_scores_do_not_grow_with_the_input():
    layer, x = make(), random_array(np.random.default_rng(4), B, T, C)
    layer.projection.b.data[...] = 0.0
    for factor in (1.0, 1e6):
        q, k, _ = np.split(host(layer(factor * x)), np.cumsum(WIDTHS)[:2], axis=-1)
        q, k = split_heads(q, H), np.repeat(split_heads(k, G), H // G, axis=1)
        gains = [np.abs(host(norm.gamma.data)).max() for norm in (layer.q_norm, layer.k_norm)]
        assert np.abs(q @ k.swapaxes(-1, -2)).max() <= D_K * np.prod(gains)


def test_ranks_cannot_divide_a_normalized_projection():
    model = GPT(gpt_config(11, d_model=8, num_heads=2, d_ff=4, num_layers=1, qk_norm=True))
    with pytest.raises(ValueError, match="NormalizedProjection has gains for all heads, which ranks cannot divide"):
        ShardedAttention(model.blocks.layers[0].self_attention.sublayer, SimpleNamespace(rank=0, size=1))
