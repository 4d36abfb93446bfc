"""Looking up the vector of each token."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_ids, check_shape
from minitransformer.functional.scatter import scatter_add


class EmbeddingCache(NamedTuple):
    """What `embedding` remembers."""

    ids: np.ndarray  # (B, T), on the host
    scale: float


def embedding(ids: np.ndarray, E: xp.ndarray, scale: float = 1.0) -> tuple[xp.ndarray, EmbeddingCache]:
    """Row ids[b, t] of E, times `scale` (paper section 3.4: sqrt(d_model)).

    ids (B, T) integers in 0 ... V - 1 on the host, E (V, C) -> y (B, T, C). This is the product of a one-hot matrix
    with E, without the multiplications by zero. Raises TypeError for ids that are not integers, ValueError for no ids,
    IndexError for an id outside the table.

    Forward    y_btc = scale E[ids_bt, c]
    Jacobian   dy_btc/dE_vc = scale 1[ids_bt = v]
    Chain      dE_vc = scale sum over all (b, t) with ids_bt = v of dy_btc        a token that occurs twice gets both
    Remember   the ids, on the host, where they can be sorted without waiting for a GPU
    Check      the sum of dE over the vocabulary is scale times the sum of dy over all tokens
    """
    check_ids("ids", ids, len(E))
    y = E[to_device(ids)]
    y *= scale
    return y, EmbeddingCache(ids, scale)


def embedding_backward(dy: xp.ndarray, cache: EmbeddingCache, dE: xp.ndarray) -> None:
    """Add the gradient of the table to `dE` (V, C), in place, from dy (B, T, C); see `embedding` for the derivation.

    It adds in place, unlike the other backward functions, because it touches only the rows of the tokens that occur.
    Raises ValueError for a dy or dE of the wrong shape, IndexError if dE has fewer rows than the table had.
    """
    ids, scale = cache
    check_shape("dy", dy, (*ids.shape, dE.shape[-1]))
    scatter_add(dE, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)
