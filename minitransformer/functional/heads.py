"""Splitting d_model into heads and merging them again: each is the other's backward."""

from minitransformer.backend import xp


def split_heads(x, num_heads):
    """Head h of token t gets the h-th run of D = C / H features: x (B, T, C) -> (B, H, T, D), a view.

    It takes a reshape AND a transpose: reshaping straight to (B, H, T, D) has the right shape and mixes positions.
    A permutation of entries, so its backward is the inverse permutation, `merge_heads`.
    """
    if x.ndim != 3 or x.shape[-1] % num_heads:
        raise ValueError(f"x must be of shape (B, T, C) with C a multiple of {num_heads}, got {tuple(x.shape)}")
    B, T, C = x.shape
    return x.reshape(B, T, num_heads, C // num_heads).transpose(0, 2, 1, 3)


def merge_heads(*parts):
    """The heads side by side again, "Concat" in paper section 3.2.2: x (B, H, T, D) -> (B, T, H D).

    The inverse of `split_heads`, and therefore its backward. Several parts, as the gradients of q, k and v, come to
    stand side by side as well: (B, T, len(parts) H D).
    """
    B, H, T, D = parts[0].shape
    merged = xp.empty((B, T, len(parts), H, D), parts[0].dtype)
    for i, part in enumerate(parts):
        merged[:, :, i] = part.transpose(0, 2, 1, 3)
    return merged.reshape(B, T, len(parts) * H * D)
