"""Linear attention (Katharopoulos et al. 2020): a Transformer that is also a recurrent network.

Softmax attention weighs a value by exp(q . k). Linear attention weighs it by phi(q) . phi(k), and then the sums over
the keys can be taken before the query is known:

    y_t = sum_s (phi(q_t) . phi(k_s)) v_s / sum_s phi(q_t) . phi(k_s) = phi(q_t) Z / phi(q_t) . z
    Z = sum_s phi(k_s) v_s^T  (D, D)        z = sum_s phi(k_s)  (D,)

So the work grows with T D^2 instead of T^2 D. In a causal model Z and z are running sums: the state of a recurrent
network, whose size does not depend on the length of the text.
"""

from typing import NamedTuple

from minitransformer.backend import backend_name, xp
from minitransformer.checks import check_attention, check_integer, check_mask, check_numbers, check_shape, check_switch
from minitransformer.functional.reductions import row_dot
from minitransformer.functional.since_2017.grouped import group_heads, ungroup_heads

CHUNK = 64  # tokens; the work per token is proportional to CHUNK + D
GPU_CHUNK = 512  # more work in fewer launches


class LinearAttentionCache(NamedTuple):
    """What `linear_attention` remembers."""

    queries: xp.ndarray  # phi(q), (B, H, T, D)
    keys: xp.ndarray  # phi(k), (B, G, S, D), before keys that may not be attended to are left out
    values: xp.ndarray  # v and a feature of ones, (B, G, S, D + 1)
    allowed: xp.ndarray | None  # (B, 1, S, 1) or (1, 1, S, 1)
    y: xp.ndarray  # (B, H, T, D)
    total: xp.ndarray  # (B, H, T, 1), the sum of the weights that y is divided by
    causal: bool
    chunk: int
    state: xp.ndarray | None  # Z after the last token (B, G, D, D + 1), if causal

    @property
    def weights(self) -> xp.ndarray:
        """The weights (B, H, T, S), which attention itself never computes, to look at them."""
        keys = self.keys if self.allowed is None else self.keys * self.allowed
        products = group_heads(self.queries, keys) @ keys.swapaxes(-1, -2)
        weights = ungroup_heads(products, self.queries)
        return (xp.tril(weights) if self.causal else weights) / self.total


def elu_plus_one(x: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
    """The features phi(x) = elu(x) + 1 of queries and keys, which are positive. x any shape -> (y, y).

    Forward    y = x + 1 for x > 0, else exp(x); written as exp(min(x, 0)) + max(x, 0). Taken literally, elu(x) + 1 is
               (exp(x) - 1) + 1 for negative x, which cancels: in float32 it is 0 below -17
    Jacobian   dy/dx = 1 for x > 0, else exp(x)        that is min(y, 1)
    Remember   y
    Check      y > 0; both pieces have the value 1 and the slope 1 at 0
    """
    check_numbers("x", x)
    below = x.real < 0
    y = xp.exp(xp.where(below, x, 0))
    y += xp.where(below, 0, x)
    return y, y


def elu_plus_one_backward(dy: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
    """dx from dy and the remembered y; see `elu_plus_one` for the derivation."""
    return dy * xp.where(y.real < 1, y, 1)


def linear_attention(
    q: xp.ndarray,
    k: xp.ndarray,
    v: xp.ndarray,
    allowed: xp.ndarray | None = None,
    causal: bool = False,
    chunk: int | None = None,
    state: xp.ndarray | None = None,
) -> tuple[xp.ndarray, LinearAttentionCache]:
    """Each query takes the mean of the values, weighted by phi(q) . phi(k) instead of exp(q . k).

    q (B, H, T, D), k and v (B, G, S, D) for a G that divides H (see `group_heads`) -> y (B, H, T, D). allowed, boolean,
    (B, 1, 1, S) or (1, 1, 1, S), leaves out keys, for all queries alike; a mask of single pairs would bring back the
    T S weights. A query that may attend to nothing gets y = 0.

    With `causal`, query t attends to the keys 0 ... t, and T = S. The weights exist for `chunk` tokens at a time, by
    default CHUNK, or GPU_CHUNK on a GPU. All chunks give the same y: with `chunk` = T it is the parallel form,
    attention with other weights; with 1 the recurrent form, one token after the other. The default lies between.
    `state` (B, G, D, D + 1) is the `cache.state` of an earlier call, whose sequences go on in decoding; backward does
    not go through it. Raises TypeError or ValueError for arrays that do not fit together.

    Forward    n_t = sum_s (phi(q_t) . phi(k_s)) v_s        l_t = sum_s phi(q_t) . phi(k_s)        y_t = n_t / l_t
               l is n for a value of 1, so v gets a feature of ones, v' = [v, 1] and n' = [n, l]. A chunk c of a causal
               sequence, with the state Z of all chunks before it:
               n'_c = tril(phi(q_c) phi(k_c)^T) v'_c + phi(q_c) Z        then Z += phi(k_c)^T v'_c
    Chain      dn = dy / l        dl = -(dy . y) / l        both together dn'
               dphi(q_c) = tril(dn'_c v'_c^T) phi(k_c) + dn'_c Z^T        Z once more, from the first chunk to the last
               dphi(k_c) = tril(dn'_c v'_c^T)^T phi(q_c) + v'_c R^T
               dv'_c = tril(phi(q_c) phi(k_c)^T)^T dn'_c + phi(k_c) R
               with R = sum of phi(q)^T dn' over the chunks after c, from the last chunk to the first
    Remember   phi(q), phi(k), v, y and l: nothing of the size T S, and no state
    Check      y does not depend on `chunk`; the sum of the weights is 1, so equal values give themselves
    """
    if chunk is None:
        chunk = CHUNK if backend_name() == "numpy" else GPU_CHUNK
    _check(q, k, v, allowed, causal, chunk)
    queries, _ = elu_plus_one(q)
    keys, _ = elu_plus_one(k)
    values = xp.ones((*v.shape[:-1], v.shape[-1] + 1), v.dtype)
    values[..., :-1] = v
    columns = None if allowed is None else allowed.swapaxes(-1, -2)  # (B, 1, S, 1)
    kept = keys if columns is None else keys * columns
    if causal:
        sums, state = _causal_sums(queries, kept, values, chunk, state)
    else:
        sums = _sums(queries, kept, values)
    total = sums[..., -1:].copy()  # not a view, which would keep all of `sums` in memory
    total[total == 0] = 1  # a query that may attend to nothing: y = 0 / 1
    y = sums[..., :-1] / total
    return y, LinearAttentionCache(queries, keys, values, columns, y, total, causal, chunk, state)


def linear_attention_backward(dy: xp.ndarray, cache: LinearAttentionCache) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray]:
    """(dq, dk, dv) from dy (B, H, T, D), each of the shape of its array; see `linear_attention` for the derivation."""
    queries, keys, values, allowed, y, total, causal, chunk, _ = cache
    check_shape("dy", dy, y.shape)
    kept = keys if allowed is None else keys * allowed
    dsums = xp.empty((*dy.shape[:-1], dy.shape[-1] + 1), xp.result_type(dy, y))  # dn', (B, H, T, D + 1)
    dsums[..., :-1] = dy / total
    dsums[..., -1:] = -row_dot(dy, y) / total
    backward = _causal_sums_backward if causal else _sums_backward
    dqueries, dkeys, dvalues = backward(dsums, queries, kept, values, chunk)
    if allowed is not None:
        dkeys *= allowed
    return elu_plus_one_backward(dqueries, queries), elu_plus_one_backward(dkeys, keys), dvalues[..., :-1]


def _check(q, k, v, allowed, causal, chunk):
    check_attention(q, k, v)
    if q.ndim != 4:
        raise ValueError(f"linear attention takes q of shape (B, H, T, D), got {tuple(q.shape)}")
    B, T, S = q.shape[0], q.shape[2], k.shape[2]
    check_integer("chunk", chunk, least=1)
    check_switch("causal", causal)
    if causal and T != S:
        raise ValueError(f"causal linear attention needs as many queries as keys, got {T} and {S}")
    check_mask(allowed, (B, 1, 1, S))
    if allowed is not None and allowed.ndim != 4:
        raise ValueError(f"allowed must be of shape (B, 1, 1, S) for linear attention, got {tuple(allowed.shape)}")


def _sums(queries, keys, values):
    """n' without a causal mask."""
    return ungroup_heads(group_heads(queries, keys) @ (keys.swapaxes(-1, -2) @ values), queries)


def _sums_backward(dsums, queries, keys, values, chunk):
    """The gradients of queries, keys and values without a causal mask."""
    dsums, queries_g = group_heads(dsums, keys), group_heads(queries, keys)
    dqueries = ungroup_heads(dsums @ (values.swapaxes(-1, -2) @ keys), queries)
    R = queries_g.swapaxes(-1, -2) @ dsums  # (B, G, D, D + 1)
    return dqueries, values @ R.swapaxes(-1, -2), keys @ R


def _lower(products, queries):
    """A chunk of products (B, G, (H / G) c, c) with those of a query and a later key set to 0."""
    by_head = ungroup_heads(products, queries)
    return group_heads(xp.tril(by_head), products)


def _causal_sums(queries, keys, values, chunk, state):
    """n' (B, H, T, D + 1), chunk by chunk, and the state after the last one."""
    sums = xp.empty((*queries.shape[:-1], values.shape[-1]), xp.result_type(queries, keys, values))
    Z = xp.zeros((*keys.shape[:2], keys.shape[-1], values.shape[-1]), sums.dtype) if state is None else state.copy()
    for rows in _chunks(queries, chunk):
        q, k, v = group_heads(queries[:, :, rows], keys), keys[:, :, rows], values[:, :, rows]
        n = _lower(q @ k.swapaxes(-1, -2), queries[:, :, rows]) @ v
        n += q @ Z
        sums[:, :, rows] = ungroup_heads(n, queries[:, :, rows])
        Z += k.swapaxes(-1, -2) @ v
    return sums, Z


def _causal_sums_backward(dsums, queries, keys, values, chunk):
    """The gradients of queries, keys and values, with the state from the first chunk on, and R from the last."""
    dqueries, dkeys, dvalues = (xp.empty(x.shape, dsums.dtype) for x in (queries, keys, values))
    Z = xp.zeros((*keys.shape[:2], keys.shape[-1], values.shape[-1]), dsums.dtype)
    R = xp.zeros_like(Z)
    chunks = _chunks(queries, chunk)
    for rows in chunks:
        k, v, dn = keys[:, :, rows], values[:, :, rows], group_heads(dsums[:, :, rows], keys)
        dq = _lower(dn @ v.swapaxes(-1, -2), queries[:, :, rows]) @ k
        dq += dn @ Z.swapaxes(-1, -2)
        dqueries[:, :, rows] = ungroup_heads(dq, queries[:, :, rows])
        Z += k.swapaxes(-1, -2) @ v
    for rows in reversed(chunks):
        q, dn = (group_heads(x[:, :, rows], keys) for x in (queries, dsums))
        k, v = keys[:, :, rows], values[:, :, rows]
        dproducts = _lower(dn @ v.swapaxes(-1, -2), queries[:, :, rows])
        products = _lower(q @ k.swapaxes(-1, -2), queries[:, :, rows])
        dkeys[:, :, rows] = dproducts.swapaxes(-1, -2) @ q + v @ R.swapaxes(-1, -2)
        dvalues[:, :, rows] = products.swapaxes(-1, -2) @ dn + k @ R
        R += q.swapaxes(-1, -2) @ dn
    return dqueries, dkeys, dvalues


def _chunks(x, size):
    """Slices that cut the tokens of x (B, H, T, D) into chunks of `size`."""
    T = x.shape[2]
    return [slice(start, min(start + size, T)) for start in range(0, T, size)]
