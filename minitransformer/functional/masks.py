"""Masks: which positions may attend to which. Boolean, True = may attend; combine two with `&`."""

from minitransformer.backend import xp


def padding_mask(ids: xp.ndarray, pad: int | None = 0) -> xp.ndarray:
    """No position may attend to padding: ids (B, S) -> (B, 1, 1, S), to be broadcast over heads and queries.

    With pad = None nothing is padding.
    """
    allowed = xp.ones(ids.shape, dtype=bool) if pad is None else ids != pad
    return allowed[:, None, None, :]


def causal_mask(length: int) -> xp.ndarray:
    """Position t may attend to the positions up to t, itself included -> (1, 1, T, T), lower triangular.

    With the target shifted right by one this keeps a prediction from seeing its own answer (paper section 3.1).
    """
    return xp.tril(xp.ones((length, length), dtype=bool))[None, None]
