"""Tensor parallelism: the matrices of one layer divided among several ranks (Megatron-LM, Shoeybi et al. 2019).

Of a pair of linear maps, the first is cut by columns and the second by rows. What is between them works on each
feature, or on each head, alone, so it needs no other rank's numbers:

    y = a(x W) V        W = W_0 | W_1        V = V_0 over V_1        y = a(x W_0) V_0 + a(x W_1) V_1

So each rank computes one term, and one sum makes the output: g in forward. In backward the other end of the pair needs
one sum: f, because x goes into every rank's columns. A Transformer layer has two such pairs, and so four sums a step.

Everything outside (LayerNorm, the residual connection, embeddings) is computed by all ranks alike. Each has the whole
gradient of these parameters, without a sum. It differs from data parallelism: all ranks see the same batch.

Two conventions make the derivatives unambiguous. An array of which every rank has an equal copy is ONE array, so its
gradient is the derivative with respect to a change of all copies at once. And a loss that every rank computes from
equal copies is ONE number; the ranks do not add their losses up.

From top to bottom: where a matrix is cut, f and g, the two linear maps, the layers made of them, and `shard`, which
replaces the layers of a model. `join_states` puts the weights together again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from minitransformer.backend import to_host, xp
from minitransformer.checks import check_generator, check_shape, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional.dropout import random_uint16
from minitransformer.functional.linear import LinearCache, linear
from minitransformer.layers.attention import SelfAttention, SelfAttentionCache
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.feed_forward import FeedForward, FeedForwardCache
from minitransformer.layers.linear import Linear
from minitransformer.layers.since_2017.attention import GeneralAttention, GeneralSelfAttention, generalized
from minitransformer.layers.since_2017.attention_positions import RotaryPositions
from minitransformer.layers.since_2017.feed_forward import ActivatedFeedForward
from minitransformer.system.generators import make_generator


class Cut(NamedTuple):
    """Where an array is cut."""

    axis: int  # 0 for the rows of a matrix; -1 for its columns, and for a bias
    units: int  # what is not cut apart: hidden features, or heads of keys with the queries that use them
    widths: tuple[int, ...]  # of the blocks side by side along the axis, such as W^Q | W^K | W^V; each is cut by itself


def first_units(units: int, size: int) -> list[int]:
    """[the first unit of rank 0, of rank 1, ..., `units`]: as even as whole units allow, and none is empty.

    Raises ValueError for more ranks than units.
    """
    if not 1 <= size <= units:
        raise ValueError(f"each rank needs at least one head or feature, and {units} are too few for {size} ranks")
    return [units * rank // size for rank in range(size + 1)]


def split(array: np.ndarray | xp.ndarray, cut: Cut, size: int) -> list[np.ndarray]:
    """The parts of `size` ranks, rank 0 first, on the host. Rank r gets its units of every block."""
    firsts = first_units(cut.units, size)
    blocks = np.split(to_host(array), np.cumsum(cut.widths)[:-1], cut.axis)
    pieces = [
        np.split(block, [first * width // cut.units for first in firsts[1:-1]], cut.axis)
        for block, width in zip(blocks, cut.widths, strict=True)
    ]
    return [np.concatenate(of_one_rank, cut.axis) for of_one_rank in zip(*pieces, strict=True)]


class Ranks(Protocol):
    """The ranks that share a layer. A communicator of `training.parallel` is one."""

    @property
    def rank(self) -> int:
        """Which of the ranks this is, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    def add_up(self, array: xp.ndarray) -> None:
        """Replace `array` (N,), in place, by the sum of the arrays of all ranks. All must call it."""


def copy_to_ranks(x: xp.ndarray, ranks: Ranks) -> tuple[xp.ndarray, Ranks]:
    """f of Shoeybi et al. 2019, section 3: each rank reads its own copy of x. x -> y, both of any one shape.

    Forward    y_r = x for each rank r. Every rank has x already, so nothing is sent
    Jacobian   dy_r/dx = 1 for each r: N identity matrices, one below the other
    Chain      dx = sum_r dy_r. The transpose is N identity matrices side by side, which is the Jacobian of g: each rank
               uses x for something else, and the gradient of a value that is used N times is the sum over its uses
    Remember   the ranks
    Check      f and g are each other's adjoint: sum_r <f(x)_r, dy_r> = <x, g(dy)>
    """
    return x, ranks


def copy_to_ranks_backward(dy: xp.ndarray, ranks: Ranks) -> xp.ndarray:
    """dx, the same in all ranks, from each rank's own dy; see `copy_to_ranks` for the derivation."""
    return _sum(dy, ranks)


def sum_over_ranks(x: xp.ndarray, ranks: Ranks) -> tuple[xp.ndarray, Ranks]:
    """g of Shoeybi et al. 2019, section 3: the sum of the ranks' arrays, in each of them. x -> y, of any one shape.

    Forward    y = sum_r x_r. In a forward pass, this is the only communication
    Jacobian   dy/dx_r = 1 for each r: N identity matrices, side by side
    Chain      dx_r = dy. The transpose is N identity matrices, one below the other, which is the Jacobian of f: every
               rank has dy already, so nothing is sent. Adding up dy here, too, would give N times the gradient: it
               counts the one loss once for each rank that has computed it
    Remember   the ranks
    Check      g and f are each other's adjoint: <g(x), dy> = sum_r <x_r, f(dy)_r>
    """
    return _sum(x, ranks), ranks


def sum_over_ranks_backward(dy: xp.ndarray, ranks: Ranks) -> xp.ndarray:
    """dx of this rank from dy, which is the same in all ranks; see `sum_over_ranks` for the derivation."""
    return dy


def _sum(x, ranks):
    """A new array, since `add_up` works in place."""
    total = x.copy()
    ranks.add_up(total.reshape(-1))
    return total


class ColumnLinear(Linear):
    """This rank's columns of a linear map: x (..., I), the same in all ranks -> y (..., O of this rank)."""

    def __init__(self, whole: Linear, cut: Cut, ranks: Ranks) -> None:
        self.W = Parameter(split(whole.W.data, cut, ranks.size)[ranks.rank])
        self.b = None if whole.b is None else Parameter(split(whole.b.data, cut, ranks.size)[ranks.rank])
        self.ranks = ranks
        self.cuts = {"W": cut} if self.b is None else {"W": cut, "b": cut}

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LinearCache]:
        """x (..., I) -> y (..., O of this rank)."""
        copy, _ = copy_to_ranks(x, self.ranks)
        return super().forward(copy)

    def backward(self, dy: xp.ndarray, cache: LinearCache) -> xp.ndarray:
        """dy (..., O of this rank) -> dx (..., I), the same in all ranks."""
        return copy_to_ranks_backward(super().backward(dy, cache), self.ranks)


class RowLinear(Linear):
    """This rank's rows of a linear map: x (..., I of this rank) -> y (..., O), the same in all ranks.

    The bias is added to the sum. Each rank has the whole of it, and its whole gradient.
    """

    def __init__(self, whole: Linear, cut: Cut, ranks: Ranks) -> None:
        self.W = Parameter(split(whole.W.data, cut, ranks.size)[ranks.rank])
        self.b = None if whole.b is None else Parameter(whole.b.data.copy())
        self.ranks = ranks
        self.cuts = {"W": cut}

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LinearCache]:
        """x (..., I of this rank) -> y (..., O)."""
        check_width("RowLinear", x, len(self.W.data), self.W.data.dtype)
        term, cache = linear(x, self.W.data)
        y, _ = sum_over_ranks(term, self.ranks)
        if self.b is not None:
            y += self.b.data
        return y, cache

    def backward(self, dy: xp.ndarray, cache: LinearCache) -> xp.ndarray:
        """dy (..., O), the same in all ranks -> dx (..., I of this rank)."""
        return super().backward(sum_over_ranks_backward(dy, self.ranks), cache)


class ShardedFeedForward(ActivatedFeedForward):
    """This rank's hidden features of a feed-forward network: x (..., C) -> y (..., C), both the same in all ranks.

    Made from the whole layer, which stays as it is. Between the two matrices each rank draws its own dropout. Raises
    ValueError for more ranks than features.
    """

    def __init__(self, whole: FeedForward, ranks: Ranks) -> None:
        d_ff = len(whole.contract.W.data)
        blocks = whole.expand.W.data.shape[1] // d_ff  # 2 if gated
        self.activation, self.ranks = whole.activation, ranks
        self.expand = ColumnLinear(whole.expand, Cut(-1, d_ff, blocks * (d_ff,)), ranks)
        self.dropout = Dropout(whole.dropout.rate)
        self.contract = RowLinear(whole.contract, Cut(0, d_ff, (d_ff,)), ranks)

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, FeedForwardCache]:
        """x (..., C) -> y (..., C). `rng` is in the same state in all ranks, before and after."""
        return super().forward(x, _own_generator(rng, self.dropout.rate, self.ranks))


class ShardedAttention(GeneralSelfAttention):
    """This rank's heads of self-attention: x (B, T, C) -> y (B, T, C), both the same in all ranks.

    Made from the whole layer, which stays as it is. A head of keys and the heads of queries that use it stay together.
    Each rank draws its own dropout of its heads' weights. Raises ValueError for more ranks than heads of keys, and for
    positions that differ from head to head (relative, ALiBi): they would have to be cut, too.
    """

    def __init__(self, layer: SelfAttention, ranks: Ranks) -> None:
        whole = generalized(layer)
        if whole.positions is not None and not isinstance(whole.positions, RotaryPositions):
            raise ValueError(
                f"{type(whole.positions).__name__} has numbers for each head, which ranks cannot divide yet"
            )
        if not isinstance(whole.qkv, Linear):
            raise ValueError(f"{type(whole.qkv).__name__} has gains for all heads, which ranks cannot divide yet")
        groups, per_group = whole.num_kv_heads, whole.num_heads // whole.num_kv_heads
        first, end = first_units(groups, ranks.size)[ranks.rank : ranks.rank + 2]
        heads = (end - first) * per_group
        options = {name: getattr(whole, name) for name in ("positions", "scale", "kind", "d_k", "dropout_rate")}
        GeneralAttention.__init__(self, heads * whole.d_v, heads, num_kv_heads=end - first, **options)
        self.ranks, self.num_heads_of_all = ranks, whole.num_heads
        self.own_heads = slice(first * per_group, end * per_group)
        self.qkv = ColumnLinear(whole.qkv, Cut(-1, groups, whole.widths), ranks)
        self.output = RowLinear(whole.output, Cut(0, groups, (len(whole.output.W.data),)), ranks)

    def forward(
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, SelfAttentionCache]:
        """x (B, T, C), allowed broadcastable to (B, H, T, T), with the H of the whole layer -> y (B, T, C).

        `rng` is in the same state in all ranks, before and after.
        """
        own_rng = _own_generator(rng, self.dropout_rate, self.ranks)
        return super().forward(x, self._of_own_heads(allowed), own_rng)

    def extend(self, x: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """As `GeneralSelfAttention.extend`; each rank's KV cache has its own heads alone."""
        return super().extend(x, kv_cache, self._of_own_heads(allowed))

    def _of_own_heads(self, allowed):
        """The mask of this rank's heads, if it differs from head to head."""
        if allowed is None or allowed.ndim < 3 or allowed.shape[-3] == 1:
            return allowed
        check_shape("allowed", allowed, (*allowed.shape[:-3], self.num_heads_of_all, *allowed.shape[-2:]))
        return allowed[..., self.own_heads, :, :]


def _own_generator(rng, rate, ranks):
    """The generator for dropout inside this rank's part; with rate 0, nothing is drawn from `rng`.

    All ranks draw as much of `rng`, so that it stays the same in all, for what they compute alike. On a GPU this waits
    for it, once.
    """
    check_generator(rng)
    if rng is None or not rate:
        return None
    return make_generator([*to_host(random_uint16(rng, (4,))).tolist(), ranks.rank])


SHARDED: dict[type[Layer], Any] = {
    FeedForward: ShardedFeedForward,
    ActivatedFeedForward: ShardedFeedForward,
    SelfAttention: ShardedAttention,
    GeneralSelfAttention: ShardedAttention,
}


def shard(layer: Any, ranks: Ranks) -> Any:
    """Replace every feed-forward network and self-attention in `layer` by this rank's part -> the layer, or its part.

    All ranks must start from the same weights. Other layers stay whole, so that all ranks compute them alike. For the
    norm of the whole gradient, add up the squares of the shards over the ranks, and those of whole parameters once.
    """
    if type(layer) in SHARDED:
        return SHARDED[type(layer)](layer, ranks)
    if isinstance(layer, (list, tuple)):
        return type(layer)(shard(item, ranks) for item in layer)
    if isinstance(layer, Layer):
        for name, value in vars(layer).items():
            setattr(layer, name, shard(value, ranks))
    return layer


def cuts_of(layer: Layer) -> dict[str, Cut]:
    """{name of a parameter that this rank holds a part of: its cut}, as `join_states` takes it."""
    cuts = dict(layer.cuts) if isinstance(layer, (ColumnLinear, RowLinear)) else {}
    for name, child in layer.children():
        cuts |= {f"{name}.{inner}": cut for inner, cut in cuts_of(child).items()}
    return cuts


def join(parts: Sequence[np.ndarray | xp.ndarray], cut: Cut) -> np.ndarray:
    """The whole array from the parts of all ranks, on the host: the inverse of `split`."""
    firsts = first_units(cut.units, len(parts))
    pieces = []
    for part, first, end in zip(parts, firsts[:-1], firsts[1:], strict=True):
        widths = [(end - first) * width // cut.units for width in cut.widths]
        pieces.append(np.split(to_host(part), np.cumsum(widths)[:-1], cut.axis))
    return np.concatenate([piece for of_one_block in zip(*pieces, strict=True) for piece in of_one_block], cut.axis)


def join_states(states: Sequence[Mapping[str, np.ndarray]], cuts: Mapping[str, Cut]) -> dict[str, np.ndarray]:
    """The `state_dict` of the whole layer from those of all ranks, rank 0 first. What has no cut is rank 0's."""
    return {
        name: join([state[name] for state in states], cuts[name]) if name in cuts else array
        for name, array in states[0].items()
    }
