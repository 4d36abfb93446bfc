"""Splitting d_model into heads and merging them again. Each function is the backward of the other."""

from minitransformer.backend import xp


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

    The inverse of `split_heads`, and therefore its backward. Several parts, such as the gradients of q, k and v, are
    placed side by side as well: (B, T, len(parts) H D).
    """
    B, H, T, D = parts[0].shape
    merged = xp.empty((B, T, len(parts), H, D), parts[0].dtype)
    for i, part in enumerate(parts):
        merged[:, :, i] = part.transpose(0, 2, 1, 3)
    return merged.reshape(B, T, len(parts) * H * D)
