"""Looking at every array that the layers of a model hand on, to find the first number that is not finite.

    with Watch([model]) as watch:
        forward_backward(model, batch)      raises Found at the first array that holds nan or inf

The layers know nothing of it. For the length of the block each layer object gets a `forward` and a `backward` of its
own, in front of those of its class; afterwards they are gone.
"""

import linecache
import math
import os
import sys
from typing import NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Parameter

NUMPYS_OWN = os.path.dirname(np.__file__)
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
WEIGHT, FORWARD, LOSS, BACKWARD, NORM = "weight", "forward", "loss", "backward", "norm"
GROUPS = {WEIGHT: "weights", FORWARD: "activations", BACKWARD: "gradients", LOSS: "gradients"}
SILENT = {"over": "ignore", "divide": "ignore", "invalid": "ignore"}  # for np.errstate: who looks at numbers is told


class Operation(NamedTuple):
    """A line of source, and what the processor said when NumPy ran it; "" if it said nothing."""

    trouble: str  # "overflow", "divide by zero" or "invalid value"
    file: str
    line: int

    @property
    def text(self):
        """The line itself."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self):
        place = f"{self.file.removeprefix(PACKAGE)}, line {self.line}: {self.text}"
        return f"{self.trouble} in {place}" if self.trouble else f"NumPy saw none; it is somewhere in {place}"


class Finding(NamedTuple):
    """The first numbers that are not finite, and what was seen on the way to them."""

    phase: str  # one of WEIGHT, FORWARD, LOSS, BACKWARD, NORM
    layer: str  # its name in the model, "" outside all layers
    kind: str  # the layer's class, or ""
    what: str  # in words, such as "the output of decoder.norm (LayerNorm)"
    bad: str  # how many of them, such as "3 of 40 are nan"
    operation: Operation | None
    largest: dict  # {"weights": (size, name), "activations": ..., "gradients": ...}, of the finite ones before it


class Found(Exception):
    """Carries a Finding out of the layers."""

    def __init__(self, finding):
        super().__init__(finding.what)
        self.finding = finding


class Here(NamedTuple):
    """A layer under watch."""

    name: str
    layer: object

    def __str__(self):
        return f"{self.name or 'the model'} ({type(self.layer).__name__})"


def named_layers(layer, name=""):
    """(name, Layer) for `layer` and all inside it, from the outside in; one that stands twice comes twice."""
    yield name, layer
    for inner, child in layer.children():
        yield from named_layers(child, f"{name}.{inner}" if name else inner)


def largest_size(array):
    """The largest |number| of an array -> a float, which is finite just if they all are."""
    with np.errstate(all="ignore"):
        return float(xp.abs(array).max()) if array.size else 0.0


def count_bad(array):
    """How many numbers are not finite, in words."""
    counts = {"nan": int(xp.isnan(array).sum()), "infinite": int(xp.isinf(array).sum())}
    return " and ".join(f"{count:,} of {array.size:,} are {name}" for name, count in counts.items() if count)


class Watch:
    """Inside a `with` block every layer of `models` (a model and its replicas) is looked at; raises Found.

    Everything is looked at where it changes hands, which tells apart whose it is: what a layer is given is the work of
    the layer around it, what it returns is its own. NumPy tells which operation overflowed, divided by zero, or had no
    answer (`np.errstate(call=...)`). Not each is a fault: exp may overflow inside 1 / (1 + exp(x)) and the answer is
    right. So it is noted, the program goes on, and the note is dropped as soon as the numbers behind it are finite.
    That exp(-200) is 0 in float32 (underflow) is not even noted. Where several threads share a matrix product NumPy
    may see nothing, and a GPU tells nothing: then the layer's method is named in place of the operation.

    One thread at a time, please: the notes and the layers that are running are kept in one list each.
    """

    def __init__(self, models):
        self.models = models
        self.running = []  # layers whose forward or backward is running, the outermost first
        self.notes = []  # operations since the last numbers that were looked at
        self.notes_of_loss = []  # those between the logits and their gradient
        self.largest = {}
        self._before = []  # (layer, method, what stood in the object itself)
        self._errstate = np.errstate(over="call", divide="call", invalid="call", call=self._note)

    def __enter__(self):
        """Look at the weights, then stand in front of all layers."""
        self._check(WEIGHT, "the weight", lambda parameter: parameter.data)
        seen = set()
        for model in self.models:
            for name, layer in named_layers(model):
                if id(layer) not in seen:  # shared by two stacks, as positions are: the first name counts
                    seen.add(id(layer))
                    self._stand_before(Here(name, layer))
        self._errstate.__enter__()
        return self

    def __exit__(self, *exception):
        """Leave the layers as they were."""
        self._errstate.__exit__(*exception)
        for layer, method, own in self._before:
            if own is None:
                delattr(layer, method)
            else:
                setattr(layer, method, own)

    def not_finite(self, loss, norm):
        """What went wrong outside all layers' sight, after a run in which nothing was found -> Finding, or None."""
        if not math.isfinite(loss):
            what, bad = "the loss, of logits that are finite", f"it is {float(loss)}"
            return Finding(LOSS, "", "", what, bad, next(iter(self.notes_of_loss), None), self.largest)
        if not math.isfinite(norm):
            self._check(BACKWARD, "the gradient of", lambda parameter: parameter.grad)
            what, bad = "the norm of the gradient, whose numbers are finite", f"it is {float(norm)}"
            return Finding(NORM, "", "", what, bad, None, self.largest)
        return None

    def _check(self, phase, what, array_of):
        model = self.models[0]  # the replicas have the same weights, and their gradients have been gathered
        kinds = {name: type(layer).__name__ for name, layer in named_layers(model)}
        for name, parameter in model.named_parameters():
            layer = name.rpartition(".")[0]
            self._look(array_of(parameter), phase, f"{what} {name}", layer, kinds.get(layer, ""))

    def _stand_before(self, here):
        for method, run in ((FORWARD, self._forward), (BACKWARD, self._backward)):
            plain = getattr(here.layer, method)
            self._before.append((here.layer, method, vars(here.layer).get(method)))
            setattr(here.layer, method, _before(run, here, plain))

    def _forward(self, here, plain, *inputs, **options):
        self._look_at_given(FORWARD, here, inputs)
        self.running.append(here)
        result = plain(*inputs, **options)
        self._look_at_own(FORWARD, here, result[0], f"the output of {here}", plain)
        self.running.pop()
        return result

    def _backward(self, here, plain, dy, *rest, **options):
        if not self.running:
            self.notes_of_loss = list(self.notes)
        self._look_at_given(BACKWARD, here, dy)
        self.running.append(here)
        result = plain(dy, *rest, **options)
        self._look_at_own(BACKWARD, here, result, f"the gradient that {here} hands back", plain)
        for name, parameter in here.layer._members():
            # a gradient that is only noted as zero is left alone: whoever looks at it makes it so
            if isinstance(parameter, Parameter) and parameter.overwritable() is None:
                self._look_at_own(BACKWARD, here, parameter.grad, f"the gradient of {name} in {here}", plain)
        self.running.pop()
        return result

    def _look_at_given(self, phase, here, arrays):
        """What a layer is given comes from the layer around it, or from the loss."""
        gradient = "the gradient" if phase == BACKWARD else "the input"
        for array in _float_arrays(arrays):
            if self.running:
                giver = self.running[-1]
                what = f"{gradient} that {giver} has for {here}"
                self._look(array, phase, what, giver.name, type(giver.layer).__name__)
            else:
                self._look(array, LOSS, "the gradient of the loss", "", "")

    def _look_at_own(self, phase, here, arrays, what, plain):
        code = getattr(plain, "__code__", None)
        method = Operation("", code.co_filename, code.co_firstlineno) if code else None
        for array in _float_arrays(arrays):
            self._look(array, phase, what, here.name, type(here.layer).__name__, method)

    def _look(self, array, phase, what, layer, kind, method=None):
        """Raise Found unless all numbers are finite; else remember the largest, and forgive what was noted."""
        size, group = largest_size(array), GROUPS[phase]
        if not math.isfinite(size):
            operation = next(iter(self.notes), method)
            raise Found(Finding(phase, layer, kind, what, count_bad(array), operation, self.largest))
        if size > self.largest.get(group, (-1.0,))[0]:
            self.largest[group] = size, what
        self.notes.clear()

    def _note(self, trouble, flag):
        """Called by NumPy from inside the operation."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith(NUMPYS_OWN):
            frame = frame.f_back
        self.notes.append(Operation(trouble, frame.f_code.co_filename, frame.f_lineno))


def _before(run, here, plain):
    def method(*inputs, **options):
        return run(here, plain, *inputs, **options)

    return method


def _float_arrays(result):
    """The arrays of real or complex numbers in what a layer was given or returns: one, several, or none."""
    several = result if isinstance(result, tuple | list) else (result,)
    return [array for array in several if getattr(getattr(array, "dtype", None), "kind", "") in ("f", "c")]
