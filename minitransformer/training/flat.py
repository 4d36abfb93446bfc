"""All parameters of a model as one vector, so that clipping and Adam need a few calls instead of hundreds."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minitransformer.backend import xp
from minitransformer.core import Parameter


class OneThread:
    """Computes the blocks of a vector one after another, where a ThreadTeam (system/process.py) shares them."""

    def map(self, function: Callable[..., Any], *lists: Iterable[Any]) -> list[Any]:
        """[function(*items) for items in zip(*lists)]"""
        return list(map(function, *lists))


ONE_THREAD = OneThread()


class FlatParameter(Parameter):
    """One long vector (N,): the `data` and `grad` of the parameters `pieces` become views into it, with their values.

    The pieces may be given other arrays later, as when a second FlatParameter is made of them: whatever is read here
    first takes over their values and makes them views again. So several of these can take turns.
    """

    frozen = False

    def __init__(self, pieces: Sequence[Parameter]) -> None:
        self.pieces = list(pieces)
        self._data = xp.concatenate([piece.data.reshape(-1) for piece in pieces])
        self._grad = xp.zeros_like(self._data)
        self._views = []  # (data, grad) of each piece
        start = 0
        for piece in pieces:
            shape = piece.data.shape
            part = slice(start, start + math.prod(shape))
            self._views.append((self._data[part].reshape(shape), self._grad[part].reshape(shape)))
            start = part.stop
        self._take_over()

    def _take_over(self) -> None:
        """Make all pieces views into this vector, with the values that they have now."""
        for piece, (data, grad) in zip(self.pieces, self._views, strict=True):
            if piece.data is not data:
                data[...] = piece.data
                piece.data = data
            if piece.grad is not grad:
                grad[...] = piece.grad
                piece.grad = grad

    @property
    def data(self) -> xp.ndarray:  # type: ignore[override]
        """The values of all pieces as one vector (N,)."""
        self._take_over()
        return self._data

    @property
    def grad(self) -> xp.ndarray:
        """The gradients of all pieces as one vector (N,)."""
        self._take_over()
        return self._grad

    @grad.setter
    def grad(self, array: xp.ndarray) -> None:
        """Copy `array` into the vector, so that the pieces' gradients stay views into it."""
        if array is not self._grad:  # after `grad *= 2` it is the same array
            self.grad[...] = array
