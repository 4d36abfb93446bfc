"""The kinds of attention by name: which function attends, and what decoding keeps of the tokens read so far.

A kind has no parameters: all of them use the same projections of queries, keys and values.
"""

from typing import Any

from numpy.typing import DTypeLike

from minitransformer.backend import backend_name, to_device, xp
from minitransformer.functional import group_heads, scaled_dot_product_attention, ungroup_heads
from minitransformer.functional.since_2017.linear_attention import linear_attention, linear_attention_backward
from minitransformer.functional.since_2017.patterns import Pattern, ShiftedPattern
from minitransformer.functional.since_2017.tiled import tiled_attention, tiled_attention_backward
from minitransformer.functional.since_2017.tiles import TiledAttentionCache
from minitransformer.layers.attention import FullAttention
from minitransformer.layers.since_2017.kv_cache import KVCache, LinearAttentionState, RollingKVCache

LONG = 512  # queries: from here on, causal attention is faster in tiles


def attend_incrementally(
    q: xp.ndarray,
    k: xp.ndarray,
    v: xp.ndarray,
    allowed: xp.ndarray | None,
    bias: xp.ndarray | None,
    scale: float | None,
) -> xp.ndarray:
    """Attention without a backward, for a few queries: q (B, H, n, D), k and v (B, G, S, D) -> y (B, H, n, D).

    With grouped queries, the heads of one new token that share keys are queries of one head, so that no key of the KV
    cache has to be repeated.
    """
    grouped = q.shape[1] != k.shape[1] and q.shape[2] == 1
    queries = group_heads(q, k) if grouped else q  # (B, G, H / G, D)
    if grouped:
        allowed, bias = (_by_group(x, k.shape[1]) for x in (allowed, bias))
    y, _ = scaled_dot_product_attention(queries, k, v, allowed, bias=bias, scale=scale)
    return ungroup_heads(y, q)


def _by_group(x, groups):
    """A mask or bias (..., H, 1, S) for the grouped queries of one token (..., G, H / G, S), if heads differ in it."""
    if x is None or x.ndim < 3 or x.shape[-3] == 1:
        return x
    return x.reshape(*x.shape[:-3], groups, -1, x.shape[-1])


def _of_keys(x, keys):
    """A mask or bias (..., S) for these keys alone. With one entry for all keys it stays as it is."""
    return x if x is None or x.shape[-1] == 1 else x[..., keys]


class IncrementalAttention(FullAttention):
    """The paper's attention, and what it does in decoding. A mask says which tokens are in the future.

    Keys and values may have fewer heads, (B, G, S, D), and the options include bias and scale.
    """

    needs_causal_mask = True
    takes_bias_by_distance = False
    has_scores = True  # that a scale could multiply
    pattern = Pattern()

    def make_kv_cache(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> KVCache:
        """What decoding keeps of at most max_len tokens, for the shape (B, G, max_len, D)."""
        return KVCache(shape, dtype)

    def extend(
        self,
        q: xp.ndarray,
        k: xp.ndarray,
        v: xp.ndarray,
        kv_cache: Any,
        allowed: xp.ndarray | None = None,
        bias: xp.ndarray | None = None,
        scale: float | None = None,
    ) -> xp.ndarray:
        """n new tokens, q (B, H, n, D), k and v (B, G, n, D), in decoding -> y (B, H, n, D).

        allowed (B, H, n, S) and bias (H, n, S) are for all S tokens up to the last new one.
        """
        return self._attend_new(q, *self.read(k, v, kv_cache, allowed, bias), scale)

    def _attend_new(self, q, k, v, allowed, bias, scale):
        """The new tokens' queries, and what `read` has returned -> y."""
        return attend_incrementally(q, k, v, allowed, bias, scale)

    def read(
        self, k: xp.ndarray, v: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None, bias: xp.ndarray | None
    ) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray | None, xp.ndarray | None]:
        """Keys and values of new tokens, (B, G, n, D) -> those the new tokens may attend to, and their mask and bias.

        allowed and bias are those of `extend`.
        """
        return (*kv_cache.append(k, v), allowed, bias)


class TiledAttention(IncrementalAttention):
    """Attention in tiles, under a `Pattern`; see `tiled_attention`. A causal pattern needs no causal mask."""

    needs_causal_mask = False
    takes_bias_by_distance = True

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def forward(
        self, q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, allowed: xp.ndarray | None = None, **options: Any
    ) -> tuple[xp.ndarray, Any]:
        """As `FullAttention.forward`, with a bias (H, T, S), or (H, 1, T + S - 1) by distance."""
        return tiled_attention(q, k, v, allowed, pattern=self.pattern, **options)

    def backward(self, dy: xp.ndarray, cache: Any) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
        """As `FullAttention.backward`; dbias has the shape of the bias."""
        return tiled_attention_backward(dy, cache)

    def make_kv_cache(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> KVCache:
        """As in the base class. If the pattern is only a window, just the tokens inside it are kept."""
        window = self.pattern.window
        if window is None or self.pattern.stride or self.pattern.num_global:
            return KVCache(shape, dtype)
        return RollingKVCache(shape, dtype, window)

    def read(
        self, k: xp.ndarray, v: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None, bias: xp.ndarray | None
    ) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray | None, xp.ndarray | None]:
        """As in the base class. Several new tokens, such as a prompt, get all keys, in the order of the text."""
        start, n = kv_cache.length, k.shape[2]
        k, v = kv_cache.append(k, v)
        if n > 1:
            first = start + n - k.shape[2]  # the position of the first key
            return k, v, *(_of_keys(x, slice(first, None)) for x in (allowed, bias))
        if not self.pattern.is_sparse:
            return k, v, allowed, bias
        positions = kv_cache.positions
        kept = to_device(positions)
        allowed, bias = (_of_keys(x, kept) for x in (allowed, bias))
        if not isinstance(kv_cache, RollingKVCache):  # which keeps only what is in the window
            near = to_device(self.pattern.allowed(positions[-1:, None], positions))  # (1, number of keys)
            allowed = near if allowed is None else allowed & near
        return k, v, allowed, bias

    def _attend_new(self, q, k, v, allowed, bias, scale):
        """Several tokens are read in tiles, without a causal mask."""
        n = q.shape[2]
        if n == 1:
            return super()._attend_new(q, k, v, allowed, bias, scale)
        pattern = ShiftedPattern(self.pattern, k.shape[2] - n)
        return tiled_attention(q, k, v, allowed, bias=bias, scale=scale, pattern=pattern)[0]


class CausalAttention(TiledAttention):
    """Full attention that a mask keeps from later tokens; of LONG queries or more, the same function in tiles.

    Tiles do not compute the half of all pairs that no query may see. On a GPU they do not pay.
    """

    needs_causal_mask = True
    takes_bias_by_distance = False

    def __init__(self) -> None:
        super().__init__(Pattern(causal=True))

    def forward(
        self, q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, allowed: xp.ndarray | None = None, **options: Any
    ) -> tuple[xp.ndarray, Any]:
        """As `FullAttention.forward`."""
        kind = TiledAttention if in_tiles(q.shape[2]) else IncrementalAttention
        return kind.forward(self, q, k, v, allowed, **options)

    def backward(self, dy: xp.ndarray, cache: Any) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
        """As `FullAttention.backward`."""
        kind = TiledAttention if isinstance(cache, TiledAttentionCache) else IncrementalAttention
        return kind.backward(self, dy, cache)

    def _attend_new(self, q, k, v, allowed, bias, scale):
        kind = TiledAttention if in_tiles(q.shape[2]) else IncrementalAttention
        return kind._attend_new(self, q, k, v, allowed, bias, scale)


def in_tiles(queries: int) -> bool:
    """Whether causal attention computes so many queries in tiles."""
    return queries >= LONG and backend_name() == "numpy"


class LinearAttention:
    """Linear attention; see `linear_attention`. It takes no dropout on the weights, no bias and no scale."""

    needs_causal_mask = False
    takes_bias_by_distance = False
    has_scores = False

    def __init__(self, causal: bool) -> None:
        self.pattern = Pattern(causal=causal)

    def forward(
        self, q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, allowed: xp.ndarray | None = None, **options: Any
    ) -> tuple[xp.ndarray, Any]:
        """As `FullAttention.forward`, with allowed (B, 1, 1, S), and 1 / sqrt(D) does not divide the scores.

        Raises ValueError for a dropout rate, a bias or a scale, which change single weights.
        """
        if options.get("dropout_rate") or options.get("bias") is not None or options.get("scale") is not None:
            raise ValueError("linear attention takes no dropout on its weights, no bias and no scale of the scores")
        return linear_attention(q, k, v, allowed, self.pattern.causal)

    def backward(self, dy: xp.ndarray, cache: Any) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, None]:
        """As `FullAttention.backward`; dbias is always None."""
        return (*linear_attention_backward(dy, cache), None)

    def make_kv_cache(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> LinearAttentionState:
        """As `IncrementalAttention.make_kv_cache`: running sums, whose size does not depend on max_len."""
        return LinearAttentionState(shape, dtype)

    def extend(
        self, q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, kv_cache: Any, allowed: Any = None, **options: Any
    ) -> xp.ndarray:
        """As `IncrementalAttention.extend`. Of `allowed`, only which of the new tokens the last query sees counts."""
        n = q.shape[2]
        keys = None if allowed is None else allowed[..., -1:, -n:]  # the last new token sees all that is not padding
        y, cache = linear_attention(q, k, v, keys, causal=True, state=kv_cache.sums)
        kv_cache.add(cache.state, n)
        return y
