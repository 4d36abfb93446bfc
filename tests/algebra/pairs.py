"""The pairs of functions as statements about symbols: sizes, branches, and how to call the two."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import sympy

from minitransformer.backend import use_backend
from tests.algebra import symbols
from tests.algebra.names import Gradient


class Case(NamedTuple):
    """A pair of functions, and symbols to call it with."""

    function: str  # the name of the forward function
    branch: str  # which of its branches, in words
    forward: Callable[..., Any]  # (*inputs) -> (y or a tuple of them, cache)
    backward: Callable[..., Any]  # (dy or a tuple of them, cache) -> the gradients of the inputs, in their order
    inputs: dict[str, Any]  # name -> shape
    answer: bool | None = None  # to comparisons that the signs of the symbols do not decide
    backend: str = "symbols"  # "numpy" for the branches that a CPU takes

    @property
    def name(self) -> str:
        """For messages."""
        return ", ".join(filter(None, (self.function, self.branch)))

    @contextlib.contextmanager
    def branch_on(self) -> Iterator[None]:
        """Inside a `with` block the library runs on symbols, in this branch."""
        with use_backend(symbols.Symbols(self.backend)), symbols.comparisons_are(self.answer):
            yield


class Signed(NamedTuple):
    """A shape whose entries are positive and negative symbols in turn."""

    shape: tuple[int, ...]


def variables(name: str, shape: tuple[int, ...] | Signed) -> Any:
    """An array of real symbols, one for each entry."""
    signs = itertools.cycle(["positive", "negative"] if isinstance(shape, Signed) else ["real"])
    shape = shape.shape if isinstance(shape, Signed) else shape
    places = itertools.product(*map(range, shape))
    entries = [sympy.Symbol("_".join([name, *map(str, place)]), **{next(signs): True}) for place in places]
    return symbols.wrap(np.array([*entries, None])[:-1].reshape(shape))


def forward_of(case: Case) -> tuple[list[Any], tuple[Any, ...], Any]:
    """The inputs, as symbols, the outputs, and the cache."""
    with case.branch_on():
        inputs = [variables(name, shape) for name, shape in case.inputs.items()]
        y, cache = case.forward(*(x.copy() for x in inputs))
    return inputs, y if isinstance(y, tuple) else (y,), cache


def wrong_gradients(case: Case) -> list[str]:
    """The names of the inputs whose gradient is not the derivative of sum(dy y): an empty list is a proof.

    The derivative with respect to a free symbol must be 0. Then it does not matter what it depends on.
    """
    symbols.free.clear()
    inputs, outputs, cache = forward_of(case)
    upstream = tuple(variables(f"dy{i}", y.shape) for i, y in enumerate(outputs))
    loss = sum((dy * y).sum() for dy, y in zip(upstream, outputs, strict=True)).item()
    with case.branch_on():
        results = case.backward(upstream if len(upstream) > 1 else upstream[0], cache)
    results = results if isinstance(results, tuple) else (results,)
    entries = {
        name: list(zip(x.flat, dx.flat, strict=True)) for name, x, dx in zip(case.inputs, inputs, results, strict=True)
    }
    derivative = Gradient(loss, (dx for pairs in entries.values() for _, dx in pairs))
    entries["free symbols"] = [(symbol, sympy.S.Zero) for symbol in symbols.free]
    return [name for name, pairs in entries.items() if not all(derivative.equals(*pair) for pair in pairs)]
