"""Incremental decoding of a GPT: keys and values of earlier tokens are kept, and a few tokens read folded weights."""

from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.decoding.faster.folded import FoldedGPT, fold
from minitransformer.decoding.faster.states import ModelState, allowed_for_new, extend
from minitransformer.decoding.rereading import check_rows
from minitransformer.layers.since_2017.kv_cache import make_kv_caches

FEW = 8  # new tokens of a text: so many are read with folded weights


class GPTState(ModelState):
    """A decoder-only model, for texts of at most `max_len` tokens. The first token after the padding is at position 0.

    Raises ValueError for padding before a model with global tokens.
    """

    def __init__(self, model: Any, prompt: np.ndarray, max_len: int, padding: np.ndarray | None = None) -> None:
        super().__init__(model, prompt, padding)
        num_global = getattr(model.config.attention, "num_global", 0)
        if self.padding is not None and num_global:
            raise ValueError("a model with global tokens can only continue prompts of the same length")
        self.kv_caches = make_kv_caches(model.blocks, self.batch, max_len)
        self.folded: FoldedGPT | None = None  # made when a few tokens are read for the first time

    def extend_last(self, ids: np.ndarray, count: int) -> xp.ndarray:
        """Read ids (B, n) on the host, in one pass -> logits (B, count, V) after each of the last `count` tokens."""
        check_rows(ids, self.batch)
        model = self.model
        start: Any = self.kv_caches[0].length  # with padding, one start for each sequence
        allowed = allowed_for_new(model.config, self.kv_caches[0], ids.shape[1])
        if self.padding is not None:
            seen = to_device(np.arange(start + ids.shape[1]) >= self.padding[:, None])[:, None, None, :]
            allowed = seen if allowed is None else allowed & seen
            start = start - self.padding
        if ids.shape[1] == 1 or (ids.shape[1] <= FEW and model.config.needs_causal_mask):  # `allowed` says all
            self.folded = self.folded or fold(model)
            if self.folded is not None:
                return self.folded.extend(ids, self.kv_caches, allowed, start, count)
        x, _ = model.embedding.forward(ids, start=start)
        for layer, kv_cache in zip(model.blocks.layers, self.kv_caches, strict=True):
            x = layer.feed_forward(extend(layer.self_attention, x, kv_cache, allowed))
        y = x if model.blocks.norm is None else model.blocks.norm(x)
        return model.output(y[:, -count:])

    def cut_back(self, count: int) -> None:
        """Forget the last `count` tokens. ValueError, before any change, for attention that cannot."""
        for forgotten in (0, count):  # those that cannot refuse 0 too, before another has changed
            for kv_cache in self.kv_caches:
                kv_cache.cut_back(forgotten)

    def _extend(self, ids):
        return self.extend_last(ids, 1)[:, 0]

    def _select(self, rows, kept):
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)
