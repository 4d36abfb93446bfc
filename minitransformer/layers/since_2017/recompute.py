"""Recompute instead of keep (Chen et al. 2016, "Training deep nets with sublinear memory cost")."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.layers.losses import with_weight
from minitransformer.layers.stack import LayerStack
from minitransformer.system.generators import make_generator


class RecomputedCache(NamedTuple):
    """The cache of `Recomputed`."""

    inputs: tuple[xp.ndarray | None, ...]  # x and the context, which all layers of a stack share
    rng: Callable[[], np.random.Generator | None]  # makes a generator in the state of that before forward
    batch_weight: float = 1.0  # see `with_weight` in layers/losses.py


class Recomputed(Layer):
    """A layer that keeps its input instead of its cache, and computes forward again when backward needs the cache.

    Forward    y = layer(x, context), and everything that was made on the way is dropped
    Chain      dx = layer.backward(dy, cache)      with the cache of a second forward, which lives in this call alone
    Remember   x, the context, and the state that the random generator had: the second forward has to draw the dropout
               masks of the first, or the gradient is that of another function
    Check      y, dx and all gradients are those of the layer, bit by bit, and so is the generator's state afterwards

    N layers keep N inputs, and one cache at a time, instead of N caches. The price is one more forward pass, a third of
    a step whose backward pass takes twice as long as forward. The parameters have the names that the layer gives them.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def _members(self) -> Iterator[tuple[str, Any]]:
        return self.layer._members()

    def forward(self, *inputs: Any, rng: np.random.Generator | None = None) -> tuple[Any, RecomputedCache]:
        """x and the layer's other inputs -> its y."""
        rng, again = _repeatable(rng)
        return self.layer(*inputs, rng=rng), RecomputedCache(inputs, again)

    def backward(self, dy: xp.ndarray, cache: RecomputedCache) -> Any:
        """dy -> dx, and what else the layer's backward returns."""
        _, found = self.layer.forward(*cache.inputs, rng=cache.rng())
        return self.layer.backward(dy, with_weight(found, cache.batch_weight))


def _repeatable(rng):
    """-> a generator that draws what `rng` draws, and a function that makes another one in the same state.

    CuPy's generators do not reveal their state. There `rng` draws a seed, and both are made of it.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return rng, partial(copy.deepcopy, copy.deepcopy(rng))
    again = partial(make_generator, int(rng.integers(0, 2**31)))
    return again(), again


def recomputed(model: Any) -> Any:
    """The same model with the same parameters, but each layer of its stacks is `Recomputed`; `model` does not change.

    Raises ValueError for a model without a stack of layers.
    """
    stacks = {name: part for name, part in vars(model).items() if isinstance(part, LayerStack)}
    if not stacks:
        raise ValueError(f"recompute needs a model with stacks of layers, and a {type(model).__name__} has none")
    twin = copy.copy(model)
    for name, stack in stacks.items():
        thrifty = copy.copy(stack)
        thrifty.layers = [Recomputed(layer) for layer in stack.layers]
        setattr(twin, name, thrifty)
    return twin
