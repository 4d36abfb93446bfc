"""The three scores of a recurrent decoder's attention, written out, and what surrounds them."""

import numpy as np
import pytest

from minitransformer.config import MEMORY_ATTENTION
from minitransformer.layers import MemoryAttention
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, R = 2, 3, 5, 4
ALLOWED = np.arange(S) < np.array([5, 3])[:, None, None]  # (B, 1, S)
every_kind = pytest.mark.parametrize("kind", MEMORY_ATTENTION)


def example(kind):
    """A layer with order-one weights, the states h (B, T, R) and the memory (B, S, R)."""
    rng = np.random.default_rng(12)
    return randomize(MemoryAttention(kind, R, dtype=np.float64)), random_array(rng, B, T, R), random_array(rng, B, S, R)


def score(kind, p, h, m):
    """The score of one query h (R,) and one vector m (R,) of the memory."""
    if kind == "dot":
        return h @ m
    if kind == "general":
        return h @ p["query.W"] @ m
    return p["w"] @ np.tanh(h @ p["query.W"] + m @ p["key.W"] + p["key.b"])


@every_kind
def test_each_output_is_made_of_the_state_and_of_the_mean_of_the_memory_by_the_scores(kind):
    layer, h, memory = example(kind)
    p, y = layer.state_dict(), host(layer(h, memory, device(ALLOWED)))
    h, memory = host(h), host(memory)
    for b in range(B):
        for t in range(T):
            tokens = [m for m, may in zip(memory[b], ALLOWED[b, 0], strict=True) if may]
            exps = np.exp([score(kind, p, h[b, t], m) for m in tokens])
            context = sum(e * m for e, m in zip(exps, tokens, strict=True)) / exps.sum()
            expected = np.tanh(np.concatenate([context, h[b, t]]) @ p["combine.W"] + p["combine.b"])
            assert relative_error(y[b, t], expected) <= 1e-13


@every_kind
def test_keys_can_be_computed_once_for_all_steps(kind):
    layer, h, memory = example(kind)
    keys, _ = layer.keys(memory)
    assert same(layer.attend(h, memory, keys, device(ALLOWED))[0], layer(h, memory, device(ALLOWED)))
    assert same(layer.attend(h, memory, keys)[0], layer(h, memory))
