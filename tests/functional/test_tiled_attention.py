"""Tiled attention is full attention under the pattern's mask, in less memory; what no query may see is never read."""

import itertools
import tracemalloc
from unittest import mock

import numpy as np
import pytest

from minitransformer.functional import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    tiled_attention,
    tiled_attention_backward,
)
from minitransformer.functional.since_2017 import tiled, tiles
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.system.generators import make_generator
from minitransformer.system.process import SINGLE_THREAD
from tests.helpers import device, host, random_array, relative_error, same

B, H, T, S, D = 2, 6, 7, 10, 3
PATTERNS = [
    Pattern(),
    Pattern(causal=True),
    Pattern(causal=True, window=3),
    Pattern(window=2, num_global=2),
    Pattern(causal=True, window=2, stride=4, num_global=1),
]


def example(groups=H, length=T, keys=S, dtype=np.float64):
    """q, k, v and dy."""
    rng = np.random.default_rng(5)
    shapes = (B, H, length, D), (B, groups, keys, D), (B, groups, keys, D), (B, H, length, D)
    return [random_array(rng, *shape, dtype=dtype) for shape in shapes]


def both(q, k, v, dy, pattern, allowed=None, bias=None, **options):
    """Outputs and gradients of full attention under the pattern's mask, and of tiled attention."""
    mask = pattern.mask(q.shape[2], k.shape[2])
    y, cache = scaled_dot_product_attention(q, k, v, mask if allowed is None else mask & allowed, bias=bias)
    full = y, *scaled_dot_product_attention_backward(dy, cache)
    y, cache = tiled_attention(q, k, v, allowed, bias=bias, pattern=pattern, **options)
    return full, (y, *tiled_attention_backward(dy, cache))


def assert_equal(full, tiled, bound=1e-14):
    for expected, got in zip(full, tiled, strict=True):
        assert (expected is None) == (got is None)
        if expected is not None:
            assert relative_error(got, expected) <= bound


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("tile", [(3, 4), (64, 64), pytest.param((1, 1), marks=pytest.mark.exhaustive)])
def test_tiled_attention_equals_full_attention_under_the_mask_of_its_pattern(pattern, tile):
    rng = np.random.default_rng(1)
    padding = device(rng.random((B, 1, 1, S)) < 0.7)
    anything = device(rng.random((1, H, T, S)) < 0.5)
    bias = random_array(rng, H, T, S)
    for allowed, some_bias in itertools.product((None, padding, anything), (None, bias)):
        assert_equal(*both(*example(), pattern, allowed, some_bias, tile=tile), bound=1e-13)


def test_threads_share_the_backward_pass_unless_its_parts_add_to_one_bias_gradient(monkeypatch):
    q, k, v, dy = example()
    for bias, teams in ((None, 1), (random_array(np.random.default_rng(2), H, T, S), 0)):
        _, cache = tiled_attention(q, k, v, bias=bias)
        asked = []
        monkeypatch.setattr(tiled, "team_of_blas", lambda asked=asked: asked.append(1) or SINGLE_THREAD)
        tiled_attention_backward(dy, cache)
        monkeypatch.undo()
        assert len(asked) == teams


def test_tiles_in_which_nothing_is_allowed_are_never_read():
    q, k, v, dy = example(length=12, keys=12)
    k, v = host(k).copy(), host(v).copy()
    k[:, :, :4], v[:, :, :4] = np.nan, np.nan  # no query after 5 sees them
    k[:, :, 8:], v[:, :, 8:] = np.nan, np.nan  # the future of every query before 8
    y, cache = tiled_attention(q, device(k), device(v), pattern=Pattern(causal=True, window=3), tile=(2, 2))
    assert np.isfinite(host(y)[:, :, 6:8]).all()
    dq = host(tiled_attention_backward(dy, cache)[0])
    assert np.isfinite(dq[:, :, 6:8]).all()


@pytest.mark.parametrize("groups", [3, 6])
@pytest.mark.parametrize("pattern", PATTERNS[::2], ids=str)
def test_bias_by_distance_equals_the_bias_of_every_pair(pattern, groups):
    q, k, v, dy = example(groups)
    distances = random_array(np.random.default_rng(2), H, 1, T + S - 1)
    pairs = np.array([[[numbers[0, s - t + T - 1] for s in range(S)] for t in range(T)] for numbers in host(distances)])
    y, cache = tiled_attention(q, k, v, bias=device(pairs), pattern=pattern, tile=(2, 3))
    *expected, dpairs = tiled_attention_backward(dy, cache)
    ddistances = np.zeros((H, 1, T + S - 1))
    for h, t, s in np.ndindex(H, T, S):
        ddistances[h, 0, s - t + T - 1] += host(dpairs)[h, t, s]
    results = tiled_attention(q, k, v, bias=distances, pattern=pattern, tile=(3, 4))
    assert_equal((y, *expected, device(ddistances)), (results[0], *tiled_attention_backward(dy, results[1])), 1e-13)


@pytest.mark.host_only
def test_bias_by_distance_needs_no_memory_for_pairs():
    rng = np.random.default_rng(0)
    q, k, v, dy = (rng.standard_normal((1, 8, 512, 8), dtype=np.float32) for _ in range(4))

    def attend(bias):
        _, cache = tiled_attention(q, k, v, bias=bias)
        tiled_attention_backward(dy, cache)

    distances, pairs = np.zeros((8, 1, 1023), np.float32), np.zeros((8, 512, 512), np.float32)
    assert peak_of(lambda: attend(distances)) < peak_of(lambda: attend(pairs)) - 0.9 * pairs.nbytes


def test_row_whose_first_tile_is_masked_is_finite_and_right():
    q, k, v, dy = example()
    allowed = np.ones((B, H, T, S), bool)
    allowed[..., :4] = False  # the first tile of every row
    allowed[1, :, 2] = False  # and the whole of some
    full, tiled = both(q, k, v, dy, Pattern(), device(allowed), tile=(2, 4))
    assert_equal(full, tiled, bound=1e-13)
    assert not host(tiled[0])[1, :, 2].any()
    assert not host(tiled[1])[1, :, 2].any(), "a query that attends to nothing has no gradient"


def test_scores_of_any_size_are_compared_as_they_are():
    q, k, v, dy = example()
    bias = np.full((H, T, S), -1e6)  # far below any finite stand-in for minus infinity
    bias[..., 6] = -1e6 + 1
    assert_equal(*both(q, k, v, dy, Pattern(causal=True), bias=device(bias), tile=(2, 4)), bound=1e-9)


def test_dropout_keeps_the_weights_of_backward_and_divides_by_the_whole_sum():
    q, k, _, _ = example()
    one_hot = device(np.broadcast_to(np.eye(S), (B, H, S, S)).copy())  # so that y are the weights themselves
    weights, _ = tiled_attention(q, k, one_hot, tile=(2, 4))
    dropped, cache = tiled_attention(q, k, one_hot, None, 0.25, make_generator(3), tile=(2, 4))
    weights, dropped = host(weights), host(dropped)
    kept = dropped != 0
    assert 0.65 < kept.mean() < 0.85
    assert relative_error(dropped[kept], weights[kept] / 0.75) <= 1e-13
    dv = host(tiled_attention_backward(device(np.ones((B, H, T, S))), cache)[2])
    assert relative_error(dv[..., 0], dropped.sum(axis=2)) <= 1e-13, "the same mask in backward"
    again, _ = tiled_attention(q, k, one_hot, None, 0.25, make_generator(3), tile=(2, 4))
    assert same(again, device(dropped))


def test_tiles_of_one_call_and_two_calls_drop_different_weights():
    q, k, _, _ = example()
    q, k = device(np.zeros_like(host(q))), device(np.zeros_like(host(k)))
    one_hot = device(np.broadcast_to(np.eye(S), (B, H, S, S)).copy())
    rng = make_generator(3)
    first, second = (host(tiled_attention(q, k, one_hot, None, 0.5, rng, tile=(3, 3))[0]) for _ in range(2))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[..., :3, :3], first[..., 3:6, 3:6])
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[:, 0], first[:, 1])


def peak_of(function):
    """The peak of memory, in bytes, that a call allocates."""
    function()  # once before: caches of the interpreter do not count
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.host_only
@pytest.mark.parametrize(("length", "factor"), [(512, 4), pytest.param(2048, 20, marks=pytest.mark.weekly)])
def test_memory_does_not_grow_with_the_square_of_the_length(length, factor):
    rng = np.random.default_rng(0)
    q, k, v, dy = (rng.standard_normal((1, 8, length, 64), dtype=np.float32) for _ in range(4))
    pattern = Pattern(causal=True)
    mask = pattern.mask(length, length)

    def full():
        _, cache = scaled_dot_product_attention(q, k, v, mask)
        scaled_dot_product_attention_backward(dy, cache)

    def tiled():
        _, cache = tiled_attention(q, k, v, pattern=pattern)
        tiled_attention_backward(dy, cache)

    assert peak_of(tiled) * factor <= peak_of(full)


@pytest.mark.parametrize("numbers", [1, 40])
@pytest.mark.parametrize("groups", [1, 3])
def test_any_number_of_heads_and_sequences_can_be_computed_together(groups, numbers):
    bias = random_array(np.random.default_rng(4), H, T, S)
    full, together = both(*example(groups), Pattern(), bias=bias, tile=(3, 4))
    with mock.patch.object(tiles, "NUMBERS", numbers):
        _, apart = both(*example(groups), Pattern(), bias=bias, tile=(3, 4))
    assert_equal(full, together, 1e-13)
    assert_equal(together, apart, 1e-13)


def test_heads_and_sequences_that_are_computed_apart_drop_different_weights():
    q, k = (device(np.zeros(shape)) for shape in ((B, 2 * H, T, D), (B, H, S, D)))
    one_hot = device(np.broadcast_to(np.eye(S), (B, H, S, S)).copy())
    with mock.patch.object(tiles, "NUMBERS", 2 * T * S * 2):  # two heads of keys at a time
        dropped, _ = tiled_attention(q, k, one_hot, None, 0.5, make_generator(3))
    masks = {head.tobytes() for sequence in host(dropped) for head in sequence}
    assert len(masks) == B * 2 * H


@pytest.mark.parametrize(("rate", "rng"), [(0.0, make_generator(0)), (0.5, None)])
def test_nothing_is_dropped_at_rate_zero_or_without_a_generator(rate, rng):
    q, k, v, _ = example()
    y, cache = tiled_attention(q, k, v, None, rate, rng)
    assert cache.seed is None
    assert same(y, tiled_attention(q, k, v)[0])
