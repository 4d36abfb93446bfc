"""The table of subjects: everything that has a backward pass, in every switch position, at any sizes.

A `Subject` is one row. It says how to build a `Problem`: a differentiable function with its inputs and parameters. The
gradient checks, the property tests, the protocol tests and the comparison with PyTorch all start from such Problems.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.judge.gradients import MAX_ENTRIES, check_gradients, constants_to_device
from minitransformer.gradcheck.judge.loss import as_tuple
from minitransformer.gradcheck.judge.report import COMPLEX_STEP, Report
from minitransformer.gradcheck.judge.second_order import SecondOrderReport, check_second_order
from minitransformer.system.generators import make_generator

MASKS = ("none", "padding", "causal", "both", "empty_row")
ODD_MASKS = ("nothing", "random")


class Sizes(NamedTuple):
    """The length of each axis. In the defaults no two are equal, so that no two axes can be confused."""

    B: int = 4
    T: int = 5
    S: int = 7
    H: int = 2
    D: int = 3
    F: int = 8
    V: int = 11

    @property
    def C(self) -> int:
        """The features of a token. Sinusoids need an even number."""
        return self.H * self.D

    @property
    def max_len(self) -> int:
        """The number of positions: enough for a source, and for a target that starts at position 2."""
        return max(self.T, self.S) + 2


class Draw:
    """Everything random that a Problem is made of: numbers of order one, ids and masks, of the sizes n."""

    def __init__(self, n: Sizes, rng: np.random.Generator, dtype: DTypeLike) -> None:
        self.n, self.rng, self.dtype = n, rng, dtype

    def resized(self, **lengths: int) -> "Draw":
        """The same with other lengths of some axes."""
        return Draw(self.n._replace(**lengths), self.rng, self.dtype)

    def __call__(self, axes: str, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """An array whose axes have these letters: "BTC" is (B, T, C)."""
        return self.array(*(getattr(self.n, letter) for letter in axes), mean=mean, std=std)

    def array(self, *shape: int, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normally distributed numbers, as a read-only array."""
        array = (mean + std * self.rng.standard_normal(shape)).astype(self.dtype)
        array.setflags(write=False)
        return array

    def ids(self, length: int, padded: bool = False) -> np.ndarray:
        """Token ids (B, length), and padding = 0 at the end of the first row and of others if asked."""
        low = min(1, self.n.V - 1)  # a vocabulary of one token has only padding
        ids = self.rng.integers(low, self.n.V, (self.n.B, length))
        if padded:
            lengths = self.rng.integers(1, length, self.n.B, endpoint=True)
            lengths[0] = length // 2 + 1
            ids[np.arange(length) >= lengths[:, None]] = 0
        ids.setflags(write=False)
        return ids

    def tokens(self, padded: bool) -> np.ndarray | None:
        """Which of T steps are tokens (B, T), or None if all are: padding at the end of some rows."""
        return self.ids(self.n.T, padded=True) > 0 if padded and self.n.V > 1 else None

    def mask(self, kind: str, t: int, s: int) -> np.ndarray | None:
        """A mask for scores (B, H, t, s), True = may attend: one of MASKS or ODD_MASKS.

        "empty_row": one query may attend to no key. "nothing": all queries are like that. "random" has no structure.
        """
        B, H = self.n.B, self.n.H
        if kind == "random":
            shape = [length if self.rng.random() < 0.5 else 1 for length in (B, H, t)]
            return self.rng.random((*shape, s)) < self.rng.choice([0.4, 0.9])
        padding = np.ones((B, 1, 1, s), bool)
        padding[0, ..., s // 2 + 1 :] = False
        causal = np.tril(np.ones((t, s), bool))[None, None]
        empty_row = np.repeat(padding, t, axis=2)
        empty_row[B // 2, 0, t // 2] = False
        nothing = np.zeros((1, 1, t, s), bool)
        kinds = {"none": None, "padding": padding, "causal": causal, "both": padding & causal}
        return (kinds | {"empty_row": empty_row, "nothing": nothing})[kind]


class Problem(NamedTuple):
    """A differentiable function with all of its arguments. Arrays are on the host, except the parameters'."""

    function: Callable[..., tuple]  # (*inputs, *constants) on the device -> (y, cache); repeats its dropout
    backward: Callable[..., Any]  # (dy, cache) -> the gradient of each input: an array, a tuple, or None for no inputs
    inputs: dict[str, np.ndarray]  # what the function is differentiated with respect to, with the parameters
    constants: Mapping[str, np.ndarray | None]  # ids, masks, numbers; None is no mask
    parameters: dict[str, Parameter]

    def forward(self, *inputs: Any) -> tuple:
        """Inputs on the device -> (y, cache)."""
        return self.function(*inputs, *constants_to_device(self.constants.values()))

    def gradients(self, dy: Any, cache: Any) -> dict[str, Any]:
        """One backward pass that starts from zero -> {name: gradient}, the inputs before the parameters."""
        for parameter in self.parameters.values():
            parameter.zero_grad()
        gradients = dict(zip(self.inputs, as_tuple(self.backward(dy, cache)), strict=True))
        return gradients | {name: parameter.grad for name, parameter in self.parameters.items()}


@dataclass(frozen=True)
class Subject:
    """One row of the table."""

    name: str  # "NAME" or "NAME switch=position ..."
    covers: Callable[..., Any]  # the public function or class that this row proves
    make: Callable[..., Problem]  # (draw, **switches) -> Problem
    switches: dict[str, Any]
    lengths: dict[str, int] = field(default_factory=dict)  # of axes that differ from the default sizes, such as T=1
    stack: bool = False  # of layers with rows of their own, which have proven the entries: directions suffice

    @property
    def group(self) -> str:
        """The first word of the name, which all rows of one function, layer or model share."""
        return self.name.split()[0]

    def build(
        self, sizes: Sizes | None = None, rng: np.random.Generator | None = None, dtype: DTypeLike = np.float64
    ) -> Problem:
        """The Problem at these sizes, or at the row's own, with order-one random inputs and parameters.

        Without `rng` they are the same in every call.
        """
        sizes = Sizes(**self.lengths) if sizes is None else sizes
        rng = np.random.default_rng(0) if rng is None else rng
        return self.make(Draw(sizes, rng, np.dtype(dtype)), **self.switches)

    def check(self, **options: Any) -> Report:
        """Check every gradient by the complex step; `options` are those of `check_gradients`.

        With method=None the check first asks whether the complex step can be trusted, which otherwise it asks only if
        a gradient is off. For the library's own forwards a test has asked.
        """
        problem = self.build()
        entries = 0 if self.stack else MAX_ENTRIES
        options = {"name": self.name, "method": COMPLEX_STEP, "max_entries": entries, **options}
        return check_gradients(problem.forward, problem.backward, problem.inputs, problem.parameters, **options)

    def check_second_order(self, **options: Any) -> SecondOrderReport:
        """Check that the Hessian is symmetric; `options` are those of `gradcheck.check_second_order`."""
        problem = self.build()
        options = {"name": self.name, **options}
        return check_second_order(problem.forward, problem.backward, problem.inputs, problem.parameters, **options)

    def without_dropout(self) -> "Subject":
        """The same row with dropout off, for comparisons between two generators of random numbers."""
        return replace(self, switches=self.switches | {"dropout": 0.0}) if "dropout" in self.switches else self


SUBJECTS: dict[str, Subject] = {}


def register(
    name: str,
    covers: Callable[..., Any],
    make: Callable[..., Problem],
    *,
    lengths: dict[str, int] | None = None,
    stack: bool = False,
    **switches: Any,
) -> None:
    """Add one row to the table; `switches` go to `make`.

    Raises ValueError if the name is taken.
    """
    if name in SUBJECTS:
        raise ValueError(f"there is a gradient check called {name!r} already")
    SUBJECTS[name] = Subject(name, covers, make, switches, lengths or {}, stack)


def select_subjects(names: list[str]) -> list[Subject]:
    """The rows whose first word is in `names`, in the order of the table; all rows if `names` is empty.

    Raises ValueError for an unknown name, with a similar one, or with all that exist.
    """
    groups = dict.fromkeys(subject.group for subject in SUBJECTS.values())
    for name in names:
        if name not in groups:
            close = difflib.get_close_matches(name, groups, n=1)
            known = f"did you mean {close[0]}?" if close else f"choose from: base, {', '.join(groups)}"
            raise ValueError(f"there is no gradient check called {name!r}; {known}")
    return [subject for subject in SUBJECTS.values() if not names or subject.group in names]


def layer_problem(layer: Layer, d: Draw, inputs: dict, constants: dict | None = None) -> Problem:
    """The Problem of a layer: it gets random parameters, and each forward draws the same dropout."""
    randomize_parameters(layer, d.rng)

    def function(*arrays):
        return layer.forward(*arrays, rng=make_generator(1))

    trained = {name: parameter for name, parameter in layer.named_parameters() if not parameter.frozen}
    return Problem(function, layer.backward, inputs, constants or {}, trained)
