"""Layers divided among ranks (lessons/support) are the whole layers, however many ranks; these are threads here."""

import copy

from support.tensor_parallel import (
    Cut,
    ShardedAttention,
    copy_to_ranks,
    copy_to_ranks_backward,
    cuts_of,
    first_units,
    join_states,
    shard,
    split,
    sum_over_ranks,
    sum_over_ranks_backward,
)

import numpy as np
import pytest

from minitransformer.config import Experts
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import (
    ActivatedFeedForward,
    AlibiPositions,
    FeedForward,
    GeneralSelfAttention,
    RotaryPositions,
    SelfAttention,
)
from minitransformer.layers.since_2017.attention_kinds import LinearAttention, TiledAttention
from minitransformer.layers.since_2017.kv_cache import extend_sublayer, make_kv_cache
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from tests.helpers import device, host, random_array, random_host_array, randomize, relative_error
from tests.ranks import in_ranks, same_in_all

C, F, H, B, T = 12, 10, 4, 2, 5
RANKS = (1, 2, 3)


def network(**options):
    kind = ActivatedFeedForward if "activation" in options else FeedForward
    return randomize(kind(C, F, dtype=np.float64, **options))


def attention(heads=H, **options):
    kind = GeneralSelfAttention if options.keys() - {"bias", "dropout_rate"} else SelfAttention
    return randomize(kind(C, heads, dtype=np.float64, **options))


def head_mask():
    """Which keys each head of each sequence may use; it differs from head to head, and one query may use none."""
    allowed = np.random.default_rng(5).random((B, H, T, T)) < 0.6
    allowed[0, 1, 2] = False
    return allowed


LAYERS = {
    "feed-forward": (network, None),
    "feed-forward without bias": (lambda: network(bias=False), None),
    "feed-forward swiglu": (lambda: network(activation="swiglu"), None),
    "attention": (attention, None),
    "attention causal": (attention, np.tril(np.ones((T, T), bool))),
    "attention mask of heads": (attention, head_mask()),
    "attention mask of heads for all sequences": (attention, head_mask()[0]),
    "attention rotary": (lambda: attention(3, positions=RotaryPositions(4, T, dtype=np.float64)), None),
    "attention tiled": (lambda: attention(kind=TiledAttention(Pattern(causal=True))), None),
    "attention linear": (lambda: attention(kind=LinearAttention(causal=True)), None),
    "attention grouped": (lambda: attention(num_kv_heads=2), None),
    "attention d_k": (lambda: attention(d_k=3), None),
    "attention scale": (lambda: attention(scale=0.3, bias=False), None),
}
CASES = [
    (name, size) for name in LAYERS for size in RANKS if size > 1 and not (name == "attention grouped" and size > 2)
]


def run(layer, x, dy, *context, seed=None):
    """One forward and backward pass from zero gradients -> y, dx, {name: gradient}, all on the host."""
    layer.zero_grad()
    rng = None if seed is None else np.random.Generator(np.random.SFC64(seed))
    y, cache = layer.forward(x, *context, rng=rng)
    dx = layer.backward(dy, cache)
    return host(y), host(dx), {name: host(parameter.grad) for name, parameter in layer.named_parameters()}


def assert_close(a, b, bound=1e-12):
    assert a.shape == b.shape
    assert relative_error(a, b) < bound


@pytest.mark.parametrize(("name", "size"), CASES)
def test_output_and_every_gradient_are_those_of_the_whole_layer(name, size):
    make, mask = LAYERS[name]
    whole, rng = make(), np.random.default_rng(1)
    x, dy = random_array(rng, B, T, C), random_array(rng, B, T, C)
    context = () if mask is None else (device(mask),)
    y, dx, gradients = run(whole, x, dy, *context)

    def one_rank(ranks):
        layer = shard(whole, ranks)
        return *run(layer, x, dy, *context), cuts_of(layer), layer.num_parameters()

    ys, dxs, shards, cuts, _ = zip(*in_ranks(size, one_rank), strict=True)
    assert_close(same_in_all(ys), y)
    assert_close(same_in_all(dxs), dx)
    joined = join_states(shards, cuts[0])
    assert joined.keys() == gradients.keys() >= cuts[0].keys()
    for parameter, gradient in gradients.items():
        assert_close(joined[parameter], gradient)
    for parameter in gradients.keys() - cuts[0].keys():  # all ranks have the whole gradient of the last bias
        assert_close(same_in_all([part[parameter] for part in shards]), gradients[parameter])


def test_ranks_divide_each_expert_of_a_mixture_and_choose_alike():
    sizes = {"d_model": C, "num_heads": H, "d_ff": F, "experts": Experts(3, balance=0.3, z_loss=0.2)}
    build, rng = builder(TransformerConfig(11, **sizes), dtype=np.float64), np.random.default_rng(1)
    whole = randomize(build.feed_forward())
    x, dy = random_array(rng, B, T, C), random_array(rng, B, T, C)
    y, dx, gradients = run(whole, x, dy)

    def one_rank(ranks):
        layer = shard(copy.deepcopy(whole), ranks)
        return *run(layer, x, dy), cuts_of(layer)

    ys, dxs, shards, cuts = zip(*in_ranks(2, one_rank), strict=True)
    assert_close(same_in_all(ys), y)
    assert_close(same_in_all(dxs), dx)
    for parameter, gradient in join_states(shards, cuts[0]).items():
        assert_close(gradient, gradients[parameter])


@pytest.mark.parametrize("name", LAYERS)
def test_a_pair_of_maps_takes_one_sum_forward_and_one_backward(name):
    make, mask = LAYERS[name]
    x, whole = random_array(np.random.default_rng(1), B, T, C), make()
    context = () if mask is None else (device(mask),)

    def sums(ranks):
        run(shard(whole, ranks), x, x, *context)
        return [(name, shape) for name, shape, *_ in ranks.calls]

    assert in_ranks(2, sums) == 2 * [2 * [("add_up", (B * T * C,))]]


@pytest.mark.parametrize("size", RANKS)
def test_f_and_g_are_each_others_adjoint(size):
    rng = np.random.default_rng(4)
    x, dy = random_array(rng, B, C), [random_array(rng, B, C) for _ in range(size)]

    def one_rank(ranks):
        own = dy[ranks.rank]
        dx = copy_to_ranks_backward(own, ranks)
        y, cache = sum_over_ranks(own, ranks)
        return copy_to_ranks(x, ranks)[0], dx, y, sum_over_ranks_backward(x, cache)

    copies, dxs, ys, dparts = zip(*in_ranks(size, one_rank), strict=True)
    total = sum(host(part) for part in dy)
    for arrays, expected in ((copies, host(x)), (dxs, total), (ys, total), (dparts, host(x))):
        assert_close(same_in_all(arrays), expected)
    left = sum((host(copied) * host(part)).sum() for copied, part in zip(copies, dy, strict=True))
    assert left == pytest.approx((host(x) * host(ys[0])).sum(), rel=1e-13)


def test_a_sum_leaves_the_arrays_of_the_ranks_as_they_were():
    x = device(np.ones(3))
    in_ranks(2, lambda ranks: (sum_over_ranks(x, ranks), copy_to_ranks_backward(x, ranks)))
    assert host(x).tolist() == [1, 1, 1]


def dropped(size, seed):
    """(the masks inside, the mask outside and rng's next number) of each rank."""
    config = TransformerConfig(
        vocab_size=9, d_model=C, num_heads=H, d_ff=12, num_layers=1, dropout=0.5, ffn_dropout=0.5, attention_dropout=0.5
    )
    whole = randomize(builder(config, dtype=np.float64).encoder_layer())
    x = random_host_array(np.random.default_rng(1), B, T, C)

    def one_rank(ranks):
        rng = np.random.Generator(np.random.SFC64(seed))
        _, cache = shard(copy.deepcopy(whole), ranks).forward(x, rng=rng)
        inside = cache.feed_forward.sublayer.dropout.keep, cache.self_attention.sublayer.attention.keep.keep
        return inside, (cache.feed_forward.dropout.keep, cache.self_attention.dropout.keep), rng.integers(1000)

    return in_ranks(size, one_rank)


@pytest.mark.host_only
@pytest.mark.parametrize("size", [2, 3, 4])
def test_dropout_differs_inside_the_shards_and_agrees_outside(size):
    inside, outside, following = zip(*dropped(size, seed=1), strict=True)
    assert len(set(following)) == 1
    for masks in zip(*outside, strict=True):
        same_in_all(masks)
    for masks in zip(*inside, strict=True):
        common = min(mask.size for mask in masks)
        starts = [mask.ravel()[:common].tobytes() for mask in masks]
        assert len(set(starts)) == size
        assert all(0.2 < mask.mean() < 0.8 for mask in masks)


@pytest.mark.parametrize("size", [2, 3])
def test_backward_uses_the_masks_of_forward(size):
    """With everything else linear, dx is the same function of dy as y of x: the masks must be the same."""
    whole = network(dropout_rate=0.5)
    rng = np.random.default_rng(1)
    x, dy, h = rng.standard_normal((T, C)), rng.standard_normal((T, C)), 1e-30

    def one_rank(ranks):
        layer = shard(whole, ranks)
        _, dx, _ = run(layer, device(x), device(dy), seed=7)
        for parameter in layer.parameters():
            parameter.data = parameter.data.astype(np.complex128)
        v = device(x + 1j * h * dy)
        slope = host(layer.forward(v, rng=np.random.Generator(np.random.SFC64(7)))[0]).imag / h
        return (slope * dy).sum(), (dx * dy).sum()

    for slope, from_backward in in_ranks(size, one_rank):
        assert slope == pytest.approx(from_backward, rel=1e-12)


@pytest.mark.parametrize("size", [2, 4])
def test_decoding_with_a_kv_cache_is_that_of_the_whole_layer(size):
    whole = attention()
    x = random_array(np.random.default_rng(1), B, T, C)

    def decode(layer):
        kv_cache = make_kv_cache(layer, B, T)
        return np.concatenate([host(extend_sublayer(layer, x[:, t : t + 1], kv_cache)) for t in range(T)], axis=1)

    assert_close(same_in_all(in_ranks(size, lambda ranks: decode(shard(whole, ranks)))), decode(whole))


def test_every_block_is_cut_by_itself():
    """W^Q | W^K | W^V of four heads with one feature each: rank 1 of 2 has heads 2 and 3 of each of the three."""
    columns = np.arange(12.0)[None]
    assert split(columns, Cut(-1, 4, (4, 4, 4)), 2)[1].tolist() == [[2, 3, 6, 7, 10, 11]]
    assert [part.tolist() for part in split(columns, Cut(-1, 2, (8, 2, 2)), 2)] == [
        [[0, 1, 2, 3, 8, 10]],
        [[4, 5, 6, 7, 9, 11]],
    ]


def test_what_has_no_cut_is_that_of_rank_0():
    assert join_states([{"b": 1}, {"b": 2}], {}) == {"b": 1}


def test_units_are_shared_as_evenly_as_they_can_be():
    assert first_units(4, 3) == [0, 1, 2, 4]
    assert first_units(8, 2) == [0, 4, 8]
    assert all(
        max(np.diff(first_units(n, r))) - min(np.diff(first_units(n, r))) <= 1
        for n in range(1, 9)
        for r in range(1, n + 1)
    )


@pytest.mark.parametrize(
    ("make", "call", "message"),
    [
        (lambda: attention(2), None, "2 are too few for 3 ranks"),
        (lambda: attention(4, num_kv_heads=2), None, "2 are too few for 3 ranks"),
        (lambda: attention(positions=AlibiPositions(H)), None, "AlibiPositions has numbers for each head"),
        (attention, lambda layer, x: layer(x, device(np.ones((B, 2, T, T), bool))), "allowed must be of shape"),
        (network, lambda layer, x: layer.contract(x[..., :F]), "RowLinear"),  # as wide as that of the whole layer
    ],
)
def test_what_ranks_cannot_divide_and_arrays_of_another_width_than_theirs_are_refused(make, call, message):
    whole, x = make(), random_array(np.random.default_rng(1), B, T, C)

    def one_rank(ranks):
        layer = shard(whole, ranks)
        return layer if call is None else call(layer, x)

    with pytest.raises(ValueError, match=message):
        in_ranks(3, one_rank)


@pytest.mark.parametrize("make", [network, attention])
def test_without_dropout_nothing_is_drawn_and_what_draws_nothing_is_refused(make):
    """Whatever the rate, as in the whole layers."""
    whole, x = make(), random_array(np.random.default_rng(1), B, T, C)
    with pytest.raises(TypeError, match="rng must be"):
        in_ranks(2, lambda ranks: shard(whole, ranks)(x, rng=3))
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    in_ranks(1, lambda ranks: shard(whole, ranks)(x, rng=rng))
    assert rng.bit_generator.state == before


def test_the_whole_layer_is_not_changed():
    whole = attention()
    before = whole.state_dict()
    layers = in_ranks(2, lambda ranks: shard(whole, ranks))
    for layer in layers:
        assert isinstance(layer, ShardedAttention)
        for parameter in layer.parameters():
            parameter.data[...] = 0.0
    assert all(np.array_equal(array, before[name]) for name, array in whole.state_dict().items())
