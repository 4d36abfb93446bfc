"""Interventions: knock out, scale or replace heads, the residual stream and rows of attention, forward and backward.

    first, *others = heads(model)
    with intervene(model, first) as (altered,):
        loss = mean_loss(model, batch)              without the first head of the first layer

A layer is exchanged for one around it until the block ends. That is a layer like any other, so this works in every
model and around a reader's own layers. With `share_layers`, "blocks.layers.1" is the second use of the one layer, and
the other uses stay as they are. What is put in has a gradient: with `first._replace(scale=1.0)` the model
computes what it did, and after a backward pass `altered.scale.grad` is dLoss/dscale. The model is then not what its
configuration says, so decoding reads all tokens again. To train an altered model, freeze scale and value first.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.core import Layer, Parameter
from minitransformer.functional.heads import repeat_heads, repeat_heads_backward
from minitransformer.layers.since_2017.lora import put


class Change(NamedTuple):
    """At the layer `path`, one piece of the features becomes scale x + value, a number or an array that broadcasts."""

    path: str  # such as "encoder.layers.0", whose output is the residual stream
    scale: Any = 0.0
    value: Any = 0.0  # such as the mean of x over many sentences
    piece: tuple[int, int] = (0, 1)  # (i, n): the i-th, from 0, of n equal pieces
    output: bool = True  # False: x is a piece of what goes into the layer
    watch: Callable[[xp.ndarray], Any] | None = None  # called with x


class Rows(NamedTuple):
    """In the attention `path`, the `queries` get these weights, whatever their scores, the mask and dropout say."""

    path: str  # such as "encoder.layers.0.self_attention.sublayer"
    weights: Any  # broadcastable to (B, H, T, S)
    queries: Any = True  # boolean, broadcastable to (B, H, T)


class AlteredCache(NamedTuple):
    """The cache of `Altered` and of `AlteredRows`. It also has the attributes of the layer's own cache, `own`."""

    own: Any
    x: xp.ndarray  # the piece (..., features / n), or the values (B, G, S, D)
    weights: Any = None  # (B, H, T, S), those of the other queries 0 if the kind keeps no weights

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.own, name)


class Altered(Layer):
    """A layer with a `Change`, of its first input or of its output.

    Forward    y = s x + m
    Chain      dx = s dy      ds = sum dy x      dm = sum dy      (the sums over what was broadcast)
    Check      with s = 0 no gradient reaches x; with s = 1 and m = 0, y is x and ds is sum x dx
    """

    def __init__(self, layer: Any, change: Change, dtype: DTypeLike = np.float32) -> None:
        self.layer, self.change = layer, change
        self.scale, self.value = (Parameter(xp.array(given, dtype)) for given in (change.scale, change.value))

    def forward(self, x: Any, *context: Any, **options: Any) -> tuple[Any, AlteredCache]:
        """What the layer takes -> what it returns. Raises ValueError if the features have no n equal pieces."""
        if not self.change.output:
            x, kept = self._change(x)
        y, own = self.layer.forward(x, *context, **options)
        if self.change.output:
            y, kept = self._change(y)
        return y, AlteredCache(own, kept)

    def backward(self, dy: Any, cache: AlteredCache, **options: Any) -> Any:
        """The gradient of the output -> those of the inputs."""
        if self.change.output:
            return self.layer.backward(self._change_backward(dy, cache.x), cache.own, **options)
        dx = self.layer.backward(dy, cache.own, **options)
        if isinstance(dx, tuple):
            return self._change_backward(dx[0], cache.x), *dx[1:]
        return self._change_backward(dx, cache.x)

    def _piece(self, x):
        i, n = self.change.piece
        if not 0 <= i < n or x.shape[-1] % n:
            raise ValueError(f"{self.change.path}: {x.shape[-1]} features have no piece {i} of {n} equal ones")
        width = x.shape[-1] // n
        return x[..., i * width : (i + 1) * width]

    def _change(self, x):
        y, piece = x.copy(), self._piece(x)
        if self.change.watch is not None:
            self.change.watch(piece)
        self._piece(y)[...] = self.scale.data * piece + self.value.data
        return y, piece

    def _change_backward(self, dy, x):
        dx, piece = dy.copy(), self._piece(dy)
        self.scale.add_grad(summed(piece * x, self.scale.data.shape))
        self.value.add_grad(summed(piece, self.value.data.shape))
        self._piece(dx)[...] = self.scale.data * piece
        return dx


class AlteredRows(Layer):
    """A kind of attention (see layers/since_2017/attention_kinds.py) in which chosen queries have given weights p.

    Forward    y_td = sum_i p_ti v_id
    Chain      dv_id = sum_t p_ti dy_td      dp_ti = sum_d dy_td v_id      (dp summed over what was broadcast)
    Check      these queries get dq = 0, and no key gets anything from them
    """

    def __init__(self, kind: Any, rows: Rows, dtype: DTypeLike = np.float32) -> None:
        self.kind, self.takes_bias_by_distance = kind, getattr(kind, "takes_bias_by_distance", False)
        self.weights, self.chosen = Parameter(xp.array(rows.weights, dtype)), xp.asarray(rows.queries)[..., None]

    def forward(self, q: Any, k: Any, v: Any, *context: Any, **options: Any) -> tuple[xp.ndarray, AlteredCache]:
        """q (B, H, T, D), k and v (B, G, S, D), and what the kind takes -> y (B, H, T, D)."""
        y, own = self.kind.forward(q, k, v, *context, **options)
        p = xp.broadcast_to(self.weights.data, (*q.shape[:-1], k.shape[-2]))
        weights = xp.where(self.chosen, p, getattr(own, "weights", 0))
        return xp.where(self.chosen, p @ repeat_heads(v, q), y), AlteredCache(own, v, weights)

    def backward(self, dy: xp.ndarray, cache: AlteredCache) -> tuple:
        """dy (B, H, T, D) -> dq, dk, dv and dbias, as the kind returns them."""
        dq, dk, dv, dbias = self.kind.backward(xp.where(self.chosen, 0, dy), cache.own)
        dy = xp.where(self.chosen, dy, 0)
        self.weights.add_grad(summed(dy @ repeat_heads(cache.x, dy).swapaxes(-1, -2), self.weights.data.shape))
        dv_rows = repeat_heads_backward(cache.weights.swapaxes(-1, -2) @ dy, cache.x.shape[-3:-2])
        return dq, dk, dv + dv_rows, dbias


def summed(array: xp.ndarray, shape: tuple[int, ...]) -> xp.ndarray:
    """The sum over the axes along which `shape` was broadcast to that of `array`, as a new array."""
    new = array.ndim - len(shape)
    axes = tuple(i for i in range(array.ndim) if i < new or shape[i - new] == 1)
    return array.sum(axis=axes).reshape(shape) if axes else array.copy()


def heads(layer: Layer, path: str = "") -> list[Change]:
    """The changes that set one head of a model to 0, for each head: what an attention gives to its layer `output`.

    An attention is a layer with `num_heads` and `output`; of others, name the layer that mixes their heads, as in
    Change("block.mix", piece=(1, 2), output=False). `path` is the name of `layer` in the model.
    """
    count, found = getattr(layer, "num_heads", None), []
    if isinstance(count, int) and isinstance(getattr(layer, "output", None), Layer):
        found = [Change(f"{path}.output".lstrip("."), piece=(i, count), output=False) for i in range(count)]
    return sum((heads(child, f"{path}.{name}".lstrip(".")) for name, child in layer.children()), found)


@contextlib.contextmanager
def intervene(model: Layer, *changes: Change | Rows) -> Iterator[list[Any]]:
    """Inside a `with` block `model` has these changes -> its layers `Altered` and `AlteredRows`, in this order.

    Afterwards it is as before, also after an error. There may be blocks inside blocks, and many changes at one place.
    Raises ValueError for a path without a layer, and for `Rows` of a layer without a kind of attention.
    """
    dtype = model.parameters()[0].data.dtype
    made: list[Any] = []
    with contextlib.ExitStack() as undo:
        for change in changes:
            owner, key, layer = _place(model, change.path, undo)
            if isinstance(change, Rows):
                owner, key, layer = layer, "kind", getattr(layer, "kind", None)
                if not hasattr(layer, "backward"):
                    raise ValueError(f"{change.path} is a {type(owner).__name__}, which has no kind of attention")
                made.append(AlteredRows(layer, change, dtype))
            else:
                made.append(Altered(layer, change, dtype))
            put(owner, key, made[-1])
            undo.callback(put, owner, key, layer)
        yield made


def _place(layer, path, undo, owner=None, key=""):
    """(what holds the layer at `path`, its attribute or index there, the layer); paths go through altered layers.

    On the way, one of several uses of a layer becomes a layer with the same parameters, until `undo`.
    """
    if not path and owner is not None:
        return owner, key, layer
    for name, child in layer.children():
        if f"{path}.".startswith(f"{name}."):
            attribute, _, index = name.partition(".")
            owner, key = (getattr(layer, attribute), index) if index else (layer, attribute)
            inside = path[len(name) + 1 :]
            if isinstance(owner, list) and owner.count(child) > 1:
                undo.callback(put, owner, key, child)
                child = copy.deepcopy(child, {id(own): own for own in child.parameters()})
                put(owner, key, child)
            return _place(child, inside, undo, owner, key)
    if isinstance(layer, Altered):
        return _place(layer.layer, path, undo)
    raise ValueError(f"there is no layer {path!r} in a {type(layer).__name__}")
