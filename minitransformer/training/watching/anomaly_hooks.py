"""Hooks on every layer that check each array passed between layers, to find the first number that is not finite.

    with AnomalyHooks([model]):
        gradients(batch)      raises AnomalyFound at the first array that holds nan or inf

The layers do not know about the hooks. Inside the block each layer object has attributes `forward` and `backward`, and
a model `features` and `features_backward`, which hide the methods of its class. They are removed when the block ends.
"""

import linecache
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer, Parameter

NUMPY_FOLDER = os.path.dirname(np.__file__)
PACKAGE = str(Path(__file__).resolve().parents[3]) + os.sep
WEIGHT, FORWARD, LOSS, BACKWARD, NORM = "weight", "forward", "loss", "backward", "norm"
GROUPS = {WEIGHT: "weights", FORWARD: "activations", BACKWARD: "gradients", LOSS: "gradients"}


class Operation(NamedTuple):
    """A line of source, and the floating-point error that NumPy reported there; "" if it reported none."""

    error: str  # "overflow", "divide by zero" or "invalid value"
    file: str
    line: int

    @property
    def text(self) -> str:
        """The line itself."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        place = f"{self.file.removeprefix(PACKAGE)}, line {self.line}: {self.text}"
        return f"{self.error} in {place}" if self.error else f"NumPy reported none; it is somewhere in {place}"


class Anomaly(NamedTuple):
    """The first numbers that are not finite, and what was seen before them."""

    phase: str  # one of WEIGHT, FORWARD, LOSS, BACKWARD, NORM
    layer: str  # its name in the model, "" outside all layers
    kind: str  # the layer's class, or ""
    what: str  # a description, such as "the output of decoder.norm (LayerNorm)"
    bad: str  # how many of them, such as "3 of 40 are nan"
    operation: Operation | None
    largest: dict[str, tuple[float, str]]  # {"weights": (size, name), ...} of the finite numbers before it


class AnomalyFound(Exception):
    """Carries an Anomaly out of the layers."""

    def __init__(self, anomaly: Anomaly) -> None:
        super().__init__(anomaly.what)
        self.anomaly = anomaly


class NamedLayer(NamedTuple):
    """A layer with its name in the model."""

    name: str
    layer: Layer

    def __str__(self) -> str:
        return f"{self.name or 'the model'} ({type(self.layer).__name__})"


def named_layers(layer: Layer, name: str = "") -> Iterator[NamedLayer]:
    """`layer` and all layers inside it, from the outside in; one that is used twice comes twice."""
    yield NamedLayer(name, layer)
    for inner, child in layer.children():
        yield from named_layers(child, f"{name}.{inner}" if name else inner)


def largest_size(array: xp.ndarray) -> float:
    """The largest |number| of an array, which is finite exactly if all of them are."""
    with np.errstate(all="ignore"):
        return float(xp.abs(array).max()) if array.size else 0.0


def count_bad(array: xp.ndarray) -> str:
    """How many numbers are not finite, in words."""
    counts = {"nan": int(xp.isnan(array).sum()), "infinite": int(xp.isinf(array).sum())}
    return " and ".join(f"{count:,} of {array.size:,} are {name}" for name, count in counts.items() if count)


class AnomalyHooks:
    """Inside a `with` block every layer of `models` (a model and its replicas) is checked; raises AnomalyFound.

    Arrays are checked where they are passed between layers, which tells who made them: a layer's input comes from the
    layer around it, its output from the layer itself. NumPy reports which operation overflowed, divided by zero or had
    no result (`np.errstate(call=...)`). Not every report is an error: exp may overflow inside 1 / (1 + exp(x)) although
    the result is right. So a report is only noted, and the note is dropped as soon as the numbers that follow are
    finite. Underflow, such as exp(-200) = 0 in float32, is not noted. If several threads share a matrix product, NumPy
    may report nothing, and a GPU never does: then the layer's method is named instead of the operation.

    Use it from one thread at a time, because all layers share the list of notes and the list of running layers.
    """

    def __init__(self, models: Sequence[Layer]) -> None:
        self.models = models
        self.running: list[NamedLayer] = []  # layers whose forward or backward is running, the outermost first
        self.notes: list[Operation] = []  # since the last numbers that were checked
        self.notes_of_loss: list[Operation] = []  # between the logits and their gradient
        self.largest: dict[str, tuple[float, str]] = {}
        self._hidden: list[tuple[Layer, str, Any]] = []  # (layer, method, what the object itself had)
        self._errstate = np.errstate(over="call", divide="call", invalid="call", call=self._note)

    def __enter__(self) -> "AnomalyHooks":
        """Check the weights, then put a hook on every layer."""
        self._check(WEIGHT, "the weight", lambda parameter: parameter.data)
        seen = set()
        for model in self.models:
            for named in named_layers(model):
                if id(named.layer) not in seen:  # shared by two stacks, as positions are: the first name counts
                    seen.add(id(named.layer))
                    self._hook(named)
        self._errstate.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        """Remove the hooks."""
        self._errstate.__exit__(*exception)
        for layer, method, own in self._hidden:
            if own is None:
                delattr(layer, method)
            else:
                setattr(layer, method, own)

    def not_finite(self, loss: Any, norm: Any) -> Anomaly | None:
        """What went wrong outside all layers, after a run in which the hooks found nothing; None if all is finite."""
        if not math.isfinite(loss):
            what, bad = "the loss, of logits that are finite", f"it is {float(loss)}"
            return Anomaly(LOSS, "", "", what, bad, next(iter(self.notes_of_loss), None), self.largest)
        if not math.isfinite(norm):
            self._check(BACKWARD, "the gradient of", lambda parameter: parameter.grad)
            what, bad = "the norm of the gradient, whose numbers are finite", f"it is {float(norm)}"
            return Anomaly(NORM, "", "", what, bad, None, self.largest)
        return None

    def _check(self, phase: str, what: str, array_of: Callable[[Parameter], xp.ndarray]) -> None:
        model = self.models[0]  # the replicas have the same weights, and their gradients have been gathered
        kinds = {name: type(layer).__name__ for name, layer in named_layers(model)}
        for name, parameter in model.named_parameters():
            layer = name.rpartition(".")[0]
            self._look(array_of(parameter), phase, f"{what} {name}", layer, kinds.get(layer, ""))

    def _hook(self, named):
        for method, run in METHODS.items():
            if not hasattr(named.layer, method):
                continue  # only models have features
            plain = getattr(named.layer, method)
            self._hidden.append((named.layer, method, vars(named.layer).get(method)))
            setattr(named.layer, method, _hooked(run, self, named, plain))

    def _forward(self, named, plain, *inputs, **options):
        self._look_at_given(FORWARD, named, inputs)
        self.running.append(named)
        result = plain(*inputs, **options)
        self._look_at_own(FORWARD, named, result[0], f"the output of {named}", plain)
        self.running.pop()
        return result

    def _backward(self, named, plain, dy, *rest, **options):
        if not self.running:
            self.notes_of_loss += self.notes
        self._look_at_given(BACKWARD, named, dy)
        self.running.append(named)
        result = plain(dy, *rest, **options)
        self._look_at_own(BACKWARD, named, result, f"the gradient that {named} returns", plain)
        for name, parameter in named.layer._members():
            if isinstance(parameter, Parameter):
                self._look_at_own(BACKWARD, named, parameter.grad, f"the gradient of {name} in {named}", plain)
        self.running.pop()
        return result

    def _look_at_given(self, phase, named, arrays):
        """What a layer is given comes from the layer around it, or from the loss."""
        gradient = "the gradient" if phase == BACKWARD else "the input"
        for array in _float_arrays(arrays):
            if self.running:
                giver = self.running[-1]
                what = f"{gradient} that {giver} has for {named}"
                self._look(array, phase, what, giver.name, type(giver.layer).__name__)
            else:
                self._look(array, LOSS, "the gradient of the loss", "", "")

    def _look_at_own(self, phase, named, arrays, what, plain):
        code = getattr(plain, "__code__", None)
        method = Operation("", code.co_filename, code.co_firstlineno) if code else None
        for array in _float_arrays(arrays):
            self._look(array, phase, what, named.name, type(named.layer).__name__, method)

    def _look(self, array, phase, what, layer, kind, method=None):
        """Raise AnomalyFound unless all numbers are finite; else keep the largest, and drop the notes."""
        size, group = largest_size(array), GROUPS[phase]
        if not math.isfinite(size):
            operation = next(iter(self.notes), method)
            raise AnomalyFound(Anomaly(phase, layer, kind, what, count_bad(array), operation, self.largest))
        if size > self.largest.get(group, (-1.0,))[0]:
            self.largest[group] = size, what
        self.notes.clear()

    def _note(self, error, flag):
        """Called by NumPy from inside the operation."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith(NUMPY_FOLDER):
            frame = frame.f_back
        self.notes.append(Operation(error, frame.f_code.co_filename, frame.f_lineno))


def _hooked(run, hooks, named, plain):
    def method(*inputs, **options):
        return run(hooks, named, plain, *inputs, **options)

    return method


def _float_arrays(result):
    """The arrays of real or complex numbers in what a layer was given or returns: one, several, or none."""
    several = result if isinstance(result, tuple | list) else (result,)
    return [array for array in several if getattr(getattr(array, "dtype", None), "kind", "") in ("f", "c")]


METHODS = {  # what is hooked, and how
    "forward": AnomalyHooks._forward,
    "features": AnomalyHooks._forward,
    "backward": AnomalyHooks._backward,
    "features_backward": AnomalyHooks._backward,
}
