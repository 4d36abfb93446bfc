"""Incremental decoding of a Transformer: the keys and values of earlier tokens, and of the source, are kept."""

from typing import Any

import numpy as np

from minitransformer.backend import xp
from minitransformer.decoding.faster.states import SourceState, allowed_for_new, extend
from minitransformer.layers.since_2017.kv_cache import make_kv_caches, read_memory
from minitransformer.models.reading import read


class TransformerState(SourceState):
    """The decoder of a Transformer. It may read padding among the target's tokens, but no token attends to it."""

    def __init__(self, model: Any, prompt: np.ndarray, max_len: int, source: np.ndarray) -> None:
        super().__init__(model, prompt)
        memory = read(model.encode, source)
        self.kv_caches = make_kv_caches(model.decoder, self.batch, max_len)
        self.memory_kv_caches = [read_memory(layer.cross_attention.sublayer, memory) for layer in model.decoder.layers]
        self.source_allowed = model.source_allowed(source)  # (B, 1, 1, S)
        self.allowed = xp.empty((self.batch, 1, 1, max_len), dtype=bool)  # True: a read token, not padding

    def _extend(self, ids):
        model, kv_cache = self.model, self.kv_caches[0]
        start, end = kv_cache.length, kv_cache.end_after(ids.shape[1])
        x, _ = model.target_embedding.forward(ids, start=start)
        self.allowed[..., start:end] = model.target_allowed(ids, start)
        allowed, among_new = self.allowed[..., :end], allowed_for_new(model.config, kv_cache, ids.shape[1])
        allowed = allowed if among_new is None else allowed & among_new  # (B, 1, n, end)
        for layer, own, of_memory in zip(model.decoder.layers, self.kv_caches, self.memory_kv_caches, strict=True):
            x = extend(layer.self_attention, x, own, allowed)
            x = extend(layer.cross_attention, x, of_memory, self.source_allowed)
            x = layer.feed_forward(x)
        y = x if model.decoder.norm is None else model.decoder.norm(x)
        return model.output(y[:, -1:])[:, 0]

    def _select(self, rows, kept):
        self.allowed = self.allowed[kept]
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)
        if self._selects_sources(rows):
            self.source_allowed = self.source_allowed[kept]
            for kv_cache in self.memory_kv_caches:
                kv_cache.select(kept)
