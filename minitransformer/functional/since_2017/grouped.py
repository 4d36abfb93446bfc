"""Grouped queries without repeated keys (Ainslie et al. 2023): heads that share keys are queries of one head."""

from minitransformer.backend import xp


def group_heads(x: xp.ndarray, k: xp.ndarray) -> xp.ndarray:
    """The queries that share a head of the keys k, one head below the other: x (B, H, T, D) -> (B, G, (H / G) T, D).

    As they are rows of one matrix, the products with k (B, G, S, D) need no repeated keys. The backward is
    `ungroup_heads`. If G = H, x is returned as it is.
    """
    if x.shape[1] == k.shape[1]:
        return x
    return x.reshape(len(x), k.shape[1], -1, x.shape[-1])


def ungroup_heads(x: xp.ndarray, q: xp.ndarray) -> xp.ndarray:
    """x (B, G, (H / G) T, D) -> (B, H, T, D), with the H and T of q: the inverse of `group_heads`, and its backward."""
    return x if x.shape[1] == q.shape[1] else x.reshape(*q.shape[:-1], x.shape[-1])
