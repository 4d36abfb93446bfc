"""Splitting d_model into heads and merging them again, and heads of keys that several heads of queries share."""

from minitransformer.backend import backend_name, xp


def split_heads(x: xp.ndarray, num_heads: int) -> xp.ndarray:
    """Head h of token t gets the h-th run of D = C / H features: x (B, T, C) -> (B, H, T, D), a view.

    It takes a reshape AND a transpose: reshaping directly to (B, H, T, D) gives the right shape but mixes positions.
    It is a permutation of the entries, so its backward is the inverse permutation, `merge_heads`. Raises ValueError if
    x has another number of axes or num_heads does not divide C.
    """
    if x.ndim != 3 or x.shape[-1] % num_heads:
        raise ValueError(f"x must be of shape (B, T, C) with C a multiple of {num_heads}, got {tuple(x.shape)}")
    B, T, C = x.shape
    return x.reshape(B, T, num_heads, C // num_heads).transpose(0, 2, 1, 3)


def merge_heads(*parts: xp.ndarray) -> xp.ndarray:
    """The heads side by side again, "Concat" in paper section 3.2.2: x (B, H, T, D) -> (B, T, H D).

    The inverse of `split_heads`, and therefore its backward; a view of what `product_of_heads` returned. Several parts,
    such as the gradients of q, k and v, are placed side by side as well, each with its own H and D.
    """
    merged = []
    for part in parts:
        B, H, T, D = part.shape
        merged.append(part.transpose(0, 2, 1, 3).reshape(B, T, H * D))
    return merged[0] if len(merged) == 1 else xp.concatenate(merged, axis=-1)


def product_of_heads(a: xp.ndarray, b: xp.ndarray) -> xp.ndarray:
    """a @ b        a (B, H, T, S), b (B, H, S, D) -> (B, H, T, D), or any other two factors

    The heads of a token lie side by side in memory, so that `merge_heads` need not move them. On the host the product
    of each head is written there at once, as fast as into an array of its own.
    """
    if backend_name() != "numpy" or not a.ndim == b.ndim == 4:
        return a @ b
    B, H, T, _ = a.shape
    side_by_side = xp.empty((B, T, H, b.shape[-1]), xp.result_type(a, b))
    return xp.matmul(a, b, out=side_by_side.transpose(0, 2, 1, 3))


def repeat_heads(x: xp.ndarray, q: xp.ndarray) -> xp.ndarray:
    """Each head of keys or values once for each head of the queries q (B, H, T, D): x (B, G, S, D) -> (B, H, S, D).

    With grouped queries (Ainslie et al. 2023; G = 1 is the multi-query attention of Shazeer 2019), H / G neighboring
    heads of queries share one head of keys and values. If G = H or x is not 4-dimensional, x is returned as it is.
    """
    if x.ndim != 4 or q.ndim != 4 or x.shape[1] == q.shape[1]:
        return x
    return xp.repeat(x, q.shape[1] // x.shape[1], axis=1)


def repeat_heads_backward(dy: xp.ndarray, groups: tuple[int, ...]) -> xp.ndarray:
    """dx (B, G, S, D) from dy (B, H, S, D) and groups (G,): a head that was used H / G times gets the sum."""
    if dy.shape[-3:-2] == groups:
        return dy
    B, H, S, D = dy.shape
    (G,) = groups
    return dy.reshape(B, G, H // G, S, D).sum(axis=2)
