"""Looking up the vector of each token."""

from typing import NamedTuple

from minitransformer.backend import fused_on_gpu, to_device
from minitransformer.checks import check_ids
from minitransformer.functional.scatter import add_rows


class EmbeddingCache(NamedTuple):
    """What `embedding` remembers."""

    ids: object  # (B, T), on the host
    scale: float


def embedding(ids, E, scale=1.0):
    """Row ids[b, t] of E, times `scale` (paper section 3.4: sqrt(d_model)).

    ids (B, T) integers in 0 ... V - 1 on the host, E (V, C) -> y (B, T, C). It is the product of E with a matrix of
    ones and zeros, done without multiplying by zeros.

    Forward    y_btc = scale E[ids_bt, c]
    Jacobian   dy_btc/dE_vc = scale 1[ids_bt = v]
    Chain      dE_vc = scale sum over all (b, t) with ids_bt = v of dy_btc        a token that comes twice gets both
    Remember   the ids, on the host, where they can be sorted without waiting for a GPU
    Check      the sum of dE over the vocabulary is scale times the sum of dy over all tokens
    """
    check_ids("ids", ids, len(E))
    y = E[to_device(ids)]
    y *= scale
    return y, EmbeddingCache(ids, scale)


@fused_on_gpu
def embedding_backward(dy, cache, dE):
    """Add the gradient of the table to `dE` (V, C), in place; the derivation stands in `embedding`.

    It adds in place, where its siblings return a new array, because only the rows of tokens that came are touched.
    """
    ids, scale = cache
    add_rows(dE, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)
