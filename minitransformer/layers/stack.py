"""The stack of layers that encoder, decoder and GPT share."""

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer

LIBRARY = __name__.partition(".")[0] + "."


class StackCache(NamedTuple):
    """The cache of a `LayerStack`."""

    layers: list  # each layer's cache
    norm: Any  # the cache of the normalization, or None

    def attention_weights(self, sublayer: str = "self_attention") -> list[xp.ndarray]:
        """The weights (B, H, T, S) of every layer's attention called `sublayer`, first layer first -> list."""
        return [getattr(cache, sublayer).sublayer.attention.weights for cache in self.layers]


class LayerStack(Layer):
    """Layers in a row, and a normalization after the last, which pre-norm layers need.

    The same layer may be there several times. Each use has its own cache and draws its own dropout, and backward adds
    the gradients of all uses, so nothing else changes. `positions` are those that act inside the layers' attention, if
    there are any: where layers share them, their parameters have the stack's name.
    """

    layers: list[Any]
    keeps = True  # the caches of its layers; False in a copy that is `without_caches`

    def __init__(self, layers: Iterable[Layer], norm: Layer | None = None, positions: Layer | None = None) -> None:
        self.positions = positions
        self.layers = list(layers)
        self.norm = norm

    def forward(
        self, x: xp.ndarray, *context: xp.ndarray | None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, StackCache]:
        """x (B, T, C) through all layers -> y (B, T, C). Every layer gets the same context (memory, masks)."""
        caches = []
        for layer in self.layers:
            if self.keeps:
                x, cache = layer.forward(x, *context, rng=rng)
                caches.append(cache)
            else:
                x = layer(x, *context, rng=rng)  # drops its cache before the next layer makes its own
        cache_norm = None
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, StackCache(caches, cache_norm)

    def without_caches(self) -> "LayerStack":
        """A copy, of the same layers, for use without a backward pass: the arrays of one layer exist at a time.

        A stack of a class that is not the library's is left as it is: its `forward` may look into the caches.
        """
        reading = copy.copy(self)
        reading.keeps = not type(self).__module__.startswith(LIBRARY)
        return reading

    def __call__(self, *inputs: Any, **options: Any) -> xp.ndarray:
        """As `forward`, without the caches."""
        return self.without_caches().forward(*inputs, **options)[0]

    def backward(self, dy: xp.ndarray, cache: StackCache, needs_dx: bool = True) -> Any:
        """dy (B, T, C) -> dx (B, T, C).

        If nobody `needs_dx`, the pass ends at the lowest layer with a parameter that is not frozen.
        """
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer, cache_layer in self._last_layer_first(cache, needs_dx):
            dy = layer.backward(dy, cache_layer)
        return dy

    def _last_layer_first(self, cache, needs_dx):
        """(layer, its cache) of all layers that need a backward pass."""
        trained = (i for i, layer in enumerate(self.layers) if layer.is_trained)
        lowest = 0 if needs_dx else next(trained, len(self.layers))
        return zip(reversed(self.layers[lowest:]), reversed(cache.layers[lowest:]), strict=True)
