"""One use of a layer under test: which arrays it gets, and how they may be varied.

Outputs may be an array, a number, or several of them; all are joined into one vector, so that the checks see one y.
Gradients may come as a tuple or as a list.
"""

import contextlib
import dataclasses
import inspect
import math
import os
import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.core import Layer, Parameter
from minitransformer.course import FOLDER
from minitransformer.gradcheck.judge.clues import message_of
from minitransformer.gradcheck.judge.gradients import float64_values
from minitransformer.gradcheck.judge.loss import Loss, as_tuple
from minitransformer.system.generators import make_generator

MANY = 7  # sequences
LONG = (19, 131)  # tokens: more than a block of 16, 64 or 128
WIDE = 68  # features
LOUD = 5.0  # how many times as large an input is tried as well
SINGLE = "every size = 1"
SPREAD = 0.1  # how far repeated tokens differ
LIBRARY = (str(Path(__file__).parents[2]), str(FOLDER / "support"), sysconfig.get_paths()["stdlib"])


class LayerError(RuntimeError):
    """An error in the code of a layer under test, with its place, in one line."""


class Joined:
    """The shapes of a layer's outputs, by which their gradients are cut out of one vector."""

    def __init__(self, y: Any) -> None:
        self.parts = list(y) if isinstance(y, tuple | list) else [y]
        self.several = isinstance(y, tuple | list)
        for part in self.parts:
            if np.asarray(to_host(part) if hasattr(part, "dtype") else part).dtype.kind not in "fciub":
                kind = type(part).__name__
                raise TypeError(f"forward must return (y, cache) with arrays or numbers in y, got {kind}")

    def join(self) -> Any:
        """One array: y itself if it is one."""
        arrays = [part if hasattr(part, "shape") else xp.asarray(part) for part in self.parts]
        return xp.concatenate([array.reshape(-1) for array in arrays]) if self.several else arrays[0]

    def split(self, dy: Any) -> Any:
        """The gradients of the parts, like the parts."""
        if not self.several:
            return self._like(self.parts[0], dy)
        found, start = [], 0
        for part in self.parts:
            stop = start + math.prod(np.shape(part))
            found.append(self._like(part, dy[start:stop].reshape(np.shape(part))))
            start = stop
        return tuple(found)

    @staticmethod
    def _like(part: Any, dy: Any) -> Any:
        return dy if hasattr(part, "shape") else dy.item()  # a float gets a float


@dataclasses.dataclass(frozen=True)
class Use:
    """A layer with the arrays that it is called with."""

    layer: Layer
    inputs: Mapping[str, np.ndarray]  # those that have gradients
    context: Sequence[Any] = ()
    dropout_seed: int | None = None
    label: str = ""  # how the arrays differ from those that were given
    replaced: int = 0  # the length that was given, of an axis that has another one now

    @property
    def parameters(self) -> dict[str, Parameter]:
        """{name: Parameter} of those that are not frozen."""
        return {name: parameter for name, parameter in self.layer.named_parameters() if not parameter.frozen}

    @property
    def arrays(self) -> list[np.ndarray]:
        """Inputs, and then the arrays of the context."""
        return [*self.inputs.values(), *(item for item in self.context if isinstance(item, np.ndarray))]

    @property
    def first(self) -> np.ndarray:
        """The array whose axes are B, T and C; it has none if the layer is called with nothing."""
        return self.arrays[0] if self.arrays else np.zeros(())

    @property
    def names(self) -> list[str]:
        """The names of `arrays`."""
        offset = len(self.inputs)
        return [
            *self.inputs,
            *(f"argument {offset + i}" for i, item in enumerate(self.context) if isinstance(item, np.ndarray)),
        ]

    def forward(self, *arrays: Any) -> tuple[Any, Any]:
        """Inputs on the device -> (y, cache), where y is one array."""
        return self.forward_with([*arrays, *map(fresh, self.arrays[len(arrays) :])])

    def forward_with(self, arrays: Sequence[Any]) -> tuple[Any, Any]:
        """The same with `arrays`, also those of the context."""
        rest = iter(arrays[len(self.inputs) :])
        context = [next(rest) if isinstance(item, np.ndarray) else item for item in self.context]
        options = {} if self.dropout_seed is None else {"rng": make_generator(self.dropout_seed)}
        returned = self.layer.forward(*arrays[: len(self.inputs)], *context, **options)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            got = f"{len(returned)} values" if isinstance(returned, tuple | list) else type(returned).__name__
            raise TypeError(f"forward must return (y, cache), got {got}; several outputs go into a tuple y")
        joined = Joined(returned[0])
        return joined.join(), (joined, returned[1])

    def backward(self, dy: Any, cache: tuple[Joined, Any]) -> Any:
        """What the layer's backward returns, dy being one array."""
        return self.layer.backward(cache[0].split(dy), cache[1])

    def backward_all(self, dy: Any, cache: tuple[Joined, Any]) -> tuple:
        """The same as a tuple with a gradient for each input. Raises ValueError for a wrong number or shape."""
        returned = as_tuple(self.backward(dy, cache))
        if len(returned) != len(self.inputs):
            raise ValueError(f"backward returned {len(returned)} gradients for {len(self.inputs)} inputs")
        for (key, x), gradient in zip(self.inputs.items(), returned, strict=True):
            if np.shape(gradient) != x.shape:
                raise ValueError(f"the gradient of {key} has shape {np.shape(gradient)}, not {x.shape}")
        return returned

    def loss(self, seed: int) -> Loss:
        """The scalar L at these inputs."""
        return Loss(self.forward, self.inputs, self.parameters, float64_values(self.inputs, self.parameters), seed)

    def adding(self, dy: Any, cache: tuple[Joined, Any]) -> Any:
        """backward of a layer that assigns gradients, as if it added them."""
        before = {key: parameter.grad.copy() for key, parameter in self.parameters.items()}
        self.layer.zero_grad()
        returned = self.backward(dy, cache)
        for key, parameter in self.parameters.items():
            parameter.grad[...] = parameter.grad + before[key]
        return returned

    def shuffled(self, rng: np.random.Generator) -> "Use":
        """The same shapes with other numbers, of the same range: the entries of each array in another order."""

        def mix(array):
            return rng.permutation(array.reshape(-1)).reshape(array.shape)

        context = [mix(a) if isinstance(a, np.ndarray) and a.dtype.kind in "iu" else a for a in self.context]
        other = dataclasses.replace(self, inputs={key: mix(x) for key, x in self.inputs.items()}, context=context)
        try:
            other.forward(*map(fresh, other.inputs.values()))
        except Exception:  # numbers that do not fit one another
            return dataclasses.replace(other, context=self.context)
        return other

    def variations(self) -> Iterator["Use"]:
        """The same layer with one or many sequences and tokens, with axes of one length, and with larger inputs.

        A function of one array is also tried with many features, and with a single number.
        """
        first = self.first
        shape, tokens = first.shape, max(0, first.ndim - 2) if self.inputs else first.ndim - 1
        of_tokens = "T" if tokens or len(shape) == 1 else "B"
        lengths = [(0, 1, "B"), (0, MANY, "B"), (0, shape[tokens], "B = T")] if len(shape) > 1 else []
        lengths += [(tokens, n, of_tokens) for n in (1, *LONG)] if shape else []
        lengths += [(tokens, shape[-1], f"{of_tokens} = C")] if len(shape) > 1 and self.inputs else []
        for axis, length, letter in dict.fromkeys(lengths):
            yield from self._resized(axis, length, letter)
        if self.inputs:
            inputs = {key: LOUD * x for key, x in self.inputs.items()}
            yield dataclasses.replace(self, inputs=inputs, label=f"inputs {LOUD:g} times as large")
        if len(self.inputs) == 1 and not self.context and not self.parameters and first.size > 1:
            noise = 1.0 + SPREAD * np.random.default_rng(WIDE).standard_normal((*shape[:-1], WIDE))
            inputs = {key: np.take(x, np.arange(WIDE) % shape[-1], axis=-1) * noise for key, x in self.inputs.items()}
            yield dataclasses.replace(self, inputs=inputs, label=f"C = {WIDE}", replaced=shape[-1])
            inputs = {key: x.reshape(-1)[:1].reshape((1,) * x.ndim) for key, x in self.inputs.items()}
            yield dataclasses.replace(self, inputs=inputs, label=SINGLE, replaced=max(first.shape))

    def _resized(self, axis: int, length: int, letter: str) -> Iterator["Use"]:
        """The use with another length of one axis in all arrays that share it, if that is another length."""
        old = self.arrays[0].shape[axis]
        if old == length or not old or not length:
            return
        rng = np.random.default_rng([length, axis])

        def resize(array, axes):
            for i in axes:
                array = np.take(array, np.arange(length) * old // length, axis=i)  # padding stays at the end
            return array * (1.0 + SPREAD * rng.standard_normal(array.shape)) if array.dtype.kind == "f" else array

        inputs = {}
        for key, x in self.inputs.items():
            here = axis if axis == 0 else max(0, x.ndim - 2)
            inputs[key] = resize(x, [here] if x.ndim > here and x.shape[here] == old else [])
        batch = self.arrays[0].shape[0]
        context = [
            resize(a, [i for i, n in enumerate(a.shape) if n == old and (i == 0 if axis == 0 else i or n != batch)])
            if isinstance(a, np.ndarray)
            else a
            for a in self.context
        ]
        yield dataclasses.replace(self, inputs=inputs, context=context, label=f"{letter} = {length}", replaced=old)

    def fits(self, other: "Use") -> bool:
        """Whether the layer is made for these sizes, too, judged by those it was given for (`other`).

        It is not if forward fails or broadcasts, so that a length of 1 becomes the old length again.
        """
        try:
            with np.errstate(all="ignore"):
                y, cache = self.forward(*map(fresh, self.inputs.values()))
                y_other, _ = other.forward(*map(fresh, other.inputs.values()))
                if not np.isfinite(to_host(y)).all():
                    return False
                if (y.shape == y_other.shape and self.replaced in y.shape) or (self.label == SINGLE and y.size != 1):
                    return False
        except Exception:
            return False
        try:
            with np.errstate(all="ignore"):
                gradients = as_tuple(self.backward(xp.ones_like(y), cache))
        except Exception as error:
            return _place(error)[0] is not None  # somebody's own backward, whatever its name
        shapes = zip(gradients, self.inputs.values(), other.inputs.values(), strict=False)
        return not any(np.shape(g) == old.shape != new.shape for g, new, old in shapes)

    def letters(self, array: np.ndarray) -> tuple[str, ...]:
        """Names of the axes of an input."""
        return {1: ("C",), 2: ("B", "C"), 3: ("B", "T", "C"), 4: ("B", "H", "T", "D")}.get(
            array.ndim, tuple(f"axis {i}" for i in range(array.ndim))
        )

    def summary(self) -> str:
        """What is checked: "1 input (24 numbers): input; 2 parameters (20 numbers): W, b"."""
        parts = [("input", self.inputs), ("parameter", {key: p.data for key, p in self.parameters.items()})]
        texts = []
        for kind, arrays in parts:
            total = sum(int(array.size) for array in arrays.values())
            count = f"{len(arrays)} {kind}{'s' if len(arrays) != 1 else ''}"
            shown = ", ".join([*arrays][:8]) + (f" and {len(arrays) - 8} more" if len(arrays) > 8 else "")
            texts.append(f"{count} ({total} numbers): {shown}" if arrays else f"no {kind}s")
        return "; ".join(texts)


def fresh(array: np.ndarray) -> Any:
    """A copy, on the device in use except for ids."""
    return np.array(array) if array.dtype.kind in "iu" else to_device(np.array(array))


def named(inputs: Sequence[np.ndarray], names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """{name: copy that may be written to}: without names "input", or "input 0" and so on if there are several."""
    copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
    names = names or [f"input {i}" if len(inputs) > 1 else "input" for i in range(len(inputs))]
    return dict(zip(names, copies, strict=True))


@contextlib.contextmanager
def placed_errors(where: str = "", label: str = "") -> Iterator[None]:
    """A `with` block in which an error in somebody's own code becomes a LayerError: one line with file and line.

    `where` is what is running, by default forward or backward, and `label` says with which inputs.
    """
    label = f"with {label}: " if label else ""
    try:
        with _without_exit():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also GeneratorExit, which is no Exception
        frame, phase = _place(error)
        if frame is None and label and isinstance(error, ValueError):
            raise ValueError(f"{label}{error}") from error
        if frame is None or isinstance(error, LayerError):
            raise
        text = f"{type(error).__name__}: {message_of(error)}".rstrip(":. ")
        file = os.path.relpath(frame.filename) if os.path.exists(frame.filename) else frame.filename
        raise LayerError(f"{label}{file}, line {frame.lineno}, in {where or phase} ({frame.line}): {text}") from error


@contextlib.contextmanager
def _without_exit() -> Iterator[None]:
    """A `with` block in which os._exit raises SystemExit, as the process would end without a word."""
    process, leave = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:  # a child that was forked
            leave(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def _place(error: BaseException) -> tuple[traceback.FrameSummary | None, str]:
    """The last line of somebody's own file in a traceback, and the function of that file that was called."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.exists(f.filename)]
    own = [f for f in frames if not f.filename.startswith(LIBRARY) and "site-packages" not in f.filename]
    called = [f.name for f in own if f.name in ("forward", "backward", "__init__", "example")]
    return (own[-1], called[0] if called else own[0].name) if own else (None, "")


def takes_rng(layer: Layer) -> bool:
    """Whether the layer's forward takes a generator."""
    return "rng" in inspect.signature(layer.forward).parameters
