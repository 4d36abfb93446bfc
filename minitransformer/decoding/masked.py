"""Filling in masked tokens."""

from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.config import special_ids
from minitransformer.decoding.generate import log_softmax


class FilledMasks(NamedTuple):
    """The tokens that are most likely at each of M masks, in descending order."""

    ids: np.ndarray  # (M, K)
    probabilities: np.ndarray  # (M, K), under the model


def fill_mask(model: Any, ids: np.ndarray, mask_id: int, top_k: int = 5) -> FilledMasks:
    """The `top_k` = K most likely tokens at each place of ids (T,) that holds `mask_id`, M in all -> FilledMasks.

    `model` maps ids (B, T) on the host to logits (B, T, V), as BERT does. It reads the text once, so each mask is
    filled as if the others stayed masked. Special tokens and the mask itself are never chosen; K is at most the number
    of other tokens. Raises ValueError if there is no mask or top_k is less than 1, and as the model does.
    """
    check_integer("top_k", top_k, least=1)
    places = np.flatnonzero(ids == mask_id)
    if not places.size:
        raise ValueError(f"there is no mask to fill: no id is mask_id = {mask_id}")
    p = np.exp(log_softmax(to_host(model(ids[None]))[0, places]))
    never = sorted({*special_ids(model).special, mask_id})
    ranked = np.where(np.isin(np.arange(p.shape[1]), never), -1.0, p)
    best = np.argsort(-ranked, axis=1, kind="stable")[:, : min(top_k, p.shape[1] - len(never))]
    return FilledMasks(best, np.take_along_axis(p, best, axis=1))
