"""What the faster decoding states of all models share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.decoding.rereading import check_rows
from minitransformer.functional import causal_mask
from minitransformer.layers.residual import Residual
from minitransformer.layers.since_2017.kv_cache import KVCache, extend_sublayer


class ModelState:
    """A batch of texts, of which the first `padding` (B,) ids do not count. A subclass has `_extend` and `_select`.

    Prompts of different lengths are padded on the left, so that all end, and continue, at the same place. No token sees
    the padding. The state has not read its `prompt` yet.
    """

    def __init__(self, model: Any, prompt: np.ndarray, padding: np.ndarray | None = None) -> None:
        self.model, self.prompt, self.batch = model, prompt, len(prompt)
        self.padding = padding if np.any(padding) else None

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        return self._extend(ids)

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        self.batch = len(rows)
        self.padding = None if self.padding is None else self.padding[rows]
        self._select(np.asarray(rows), to_device(np.asarray(rows)))

    def _extend(self, ids):
        raise NotImplementedError

    def _select(self, rows, kept):
        """`rows` on the host and, called `kept`, on the device."""
        raise NotImplementedError


class SourceState(ModelState):
    """The decoder of an encoder-decoder, for one batch of sources (B, S)."""

    def __init__(self, model: Any, prompt: np.ndarray) -> None:
        super().__init__(model, prompt)
        self.sources = np.arange(self.batch)  # which source each row reads

    def _selects_sources(self, rows):
        """Whether rows change their sources; in most steps of beam search those of each source change places."""
        before, self.sources = self.sources, self.sources[rows]
        return not np.array_equal(before, self.sources)


def extend(residual: Residual, x: xp.ndarray, *context: Any) -> xp.ndarray:
    """As `Residual.forward`, for n new tokens x (B, n, C), with `extend_sublayer` -> y (B, n, C)."""
    if residual.placement == "post":
        return residual.norm(x + extend_sublayer(residual.sublayer, x, *context))
    s = extend_sublayer(residual.sublayer, residual.norm(x), *context)
    return x + (s if residual.norm_after is None else residual.norm_after(s))


def allowed_for_new(config: Any, kv_cache: KVCache, count: int) -> xp.ndarray | None:
    """The mask (1, 1, n, S) with which n = `count` new tokens attend to cached tokens and, causally, to new ones.

    None for one token, which may attend to everything, and for kinds of attention that need no causal mask.
    """
    if count == 1 or not config.needs_causal_mask:
        return None
    return causal_mask(kv_cache.length + count)[:, :, kv_cache.length :]
