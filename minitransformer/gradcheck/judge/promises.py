"""The promises of the layer protocol that the numbers of one gradient do not show.

forward and backward change neither their arguments nor the parameters, nor arrays that were passed or returned earlier;
two caches can live at one time; a cache serves two backward passes; gradients are added; the memory layout of an array
does not matter; and every learned array is a Parameter that `parameters()` finds. A layer that breaks one of these
promises can have right gradients when it is tried alone, and wrong ones in a model.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.check import relative_error
from minitransformer.gradcheck.holding import holding
from minitransformer.gradcheck.judge.clues import message_of
from minitransformer.gradcheck.judge.loss import size_of
from minitransformer.gradcheck.judge.use import Use, fresh

SAME = 1e-9  # two results of the same computation may differ by this
QUIET = 1e-5  # a gradient is compared with at least this part of the one that moves L by as much as its own terms
NUDGE = 1e-3  # how far a plain array is moved, relative to its size
STREAM = 106  # of random numbers
HIDDEN = (
    "{} is a Parameter that parameters() does not find, so it would be neither trained nor saved: make it an attribute "
    "of the layer, or put it into a list or tuple"
)
PLAIN = (
    "the output depends on {}, a plain array that parameters() does not find: if it is learned, make it a Parameter; "
    "if it is a constant, make it read-only with .setflags(write=False)"
)
REUSED = "a later backward changes the gradient that this one returned: return an array that nothing else writes into"
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "a transposed view": lambda array: array.copy(order="F"),
    "a slice with steps": lambda array: array.repeat(2).reshape(*array.shape, 2)[..., 0],
}
PACKAGE = __name__.partition(".")[0]


class Promises(NamedTuple):
    """What is wrong with a layer besides the numbers in its gradients."""

    broken: tuple[str, ...] = ()  # sentences
    doubts: tuple[str, ...] = ()  # sentences: it may be wrong
    assigned: bool = False  # whether gradients replace those before them
    moves: bool = False  # whether forward or backward changes the parameters, so that no derivative means anything


class _Pass(NamedTuple):
    """One forward pass, and copies of what must not change from then on."""

    inputs: list[Any]
    untouched: list[np.ndarray]  # the inputs before forward
    given: list[np.ndarray]  # the inputs after it
    y: Any
    first: np.ndarray
    cache: Any
    dy: Any


def examine_promises(use: Use, seed: int) -> Promises:
    """Try everything that the protocol promises, with the layer's own inputs and with others."""
    hidden, plain = hidden_arrays(use.layer)
    broken = [HIDDEN.format(name) for name in hidden]
    trial = _Trial(use, seed)
    unstable = not trial.forward_repeats()
    if not trial.moved and not unstable:
        trial.use_twice()
    doubts = [PLAIN.format(name) for name in plain if not unstable and trial.depends_on(plain[name])]
    return Promises(tuple(broken + trial.broken), tuple(doubts), trial.assigned, bool(trial.moved))


class _Trial:
    """Runs of a layer, and the sentences about what they have shown."""

    def __init__(self, use: Use, seed: int) -> None:
        self.use, self.rng = use, np.random.default_rng([seed, STREAM])
        self.broken: list[str] = []
        self.moved: list[str] = []  # names of parameters that have changed
        self.assigned = False
        self.weights = {key: np.array(to_host(p.data)) for key, p in use.parameters.items()}

    def forward_repeats(self) -> bool:
        """Try forward alone -> whether a second one gives the same output; else nothing can be compared."""
        first = self._forward(self.use)
        self._unchanged(first, first.untouched, "forward")
        again = self._forward(self.use)
        return _same(first.first, again.first)

    def use_twice(self) -> None:
        """Compare the gradients of two uses, in every order, with those of each use alone."""
        one, two = self.use, self.use.shuffled(self.rng)
        dys = [np.asarray(self.rng.standard_normal(self._forward(use).first.shape)) for use in (one, two)]
        alone = [self._backward(self._forward(use, dy), check=True) for use, dy in zip((one, two), dys, strict=True)]
        for order in ((1, 0), (0, 1)):
            passes = [self._forward(use, dy) for use, dy in zip((one, two), dys, strict=True)]
            if not _same(passes[0].first, to_host(passes[0].y)):
                return self._say("a second forward overwrites the output of the first: return a new array")
            for number in order:
                if not self._agree(self._backward(passes[number]), alone[number]):
                    return self._say(
                        "backward gives another gradient if a second forward came in between: what it needs belongs "
                        f"in the cache{self._kept_in(passes[number])}"
                    )
        once = self._forward(one, dys[0])
        self._backward(once)
        try:
            same = self._agree(self._backward(once), alone[0])
        except Exception as error:
            text = f"{type(error).__name__}: {message_of(error)}"
            return self._say(f"a second backward with the same cache fails: {text}")
        if not same:
            self._say("a second backward with the same cache gives another gradient: backward changes its cache")
        self._are_added(one, dys[0], alone[0])
        self._stay([one, two], dys)
        self._may_lie_anywhere(one, dys[0], alone[0])

    def depends_on(self, array: np.ndarray) -> bool:
        """Whether the output changes with this array, which keeps its values."""
        before, kept = self._forward(self.use), np.array(array)
        try:
            array += NUDGE * (np.abs(kept).max(initial=0.0) or 1.0) * self.rng.uniform(0.5, 1.0, kept.shape)
            return not _same(before.first, self._forward(self.use).first)
        except Exception:  # an array that forward checks
            return True
        finally:
            array[...] = kept

    def _are_added(self, use: Use, dy: Any, alone: Mapping[str, np.ndarray]) -> None:
        """Whether a gradient that is there already stays: it must be added to."""
        before = {key: self.rng.standard_normal(p.data.shape) for key, p in use.parameters.items()}
        after = self._backward(self._forward(use, dy), before)
        for key, old in before.items():
            if not _same(after[key], old + alone[key]) and _same(after[key], alone[key]):
                self.assigned = True
                self._say(
                    f"the gradient of {key} is assigned, not added: write `grad += ...`, so that a layer that is used "
                    "twice in a model gets the sum of both"
                )

    def _stay(self, uses: Sequence[Use], dys: Sequence[Any]) -> None:
        """Whether what a first backward returned stays what it is in a second one."""
        held: list[tuple[Any, np.ndarray]] = []
        for use, numbers in zip(uses, dys, strict=True):
            returned = use.backward_all(to_device(np.array(numbers)), self._forward(use).cache)
            held += [(gradient, np.array(to_host(gradient))) for gradient in returned]
        if not all(np.array_equal(to_host(array), before, equal_nan=True) for array, before in held):
            self.broken.append(REUSED)

    def _may_lie_anywhere(self, use: Use, dy: Any, alone: Mapping[str, np.ndarray]) -> None:
        """Whether arrays that are not contiguous in memory give the same results."""
        straight = self._forward(use)
        for name, layout in LAYOUTS.items():
            for of_dy in (False, True):
                what = f"{'dy' if of_dy else 'an input'} is not contiguous in memory, such as {name}"
                try:
                    one = self._forward(use, dy, None if of_dy else layout)
                    if not _same(one.first, straight.first):
                        self._say(f"forward gives another output if {what}")
                    elif not self._near(self._backward(one, layout=layout if of_dy else None), alone, one):
                        self._say(f"backward gives another gradient if {what}")
                except Exception as error:
                    self._say(f"it fails if {what}: {type(error).__name__}: {message_of(error)}")

    def _near(self, found: Mapping[str, np.ndarray], alone: Mapping[str, np.ndarray], one: _Pass) -> bool:
        """Whether gradients agree up to the rounding of sums in another order, in which a gradient of 0 is noise."""
        loudness = np.linalg.norm(one.dy * one.first) / min(
            map(size_of, [*one.given, *self.weights.values()]), default=1.0
        )
        largest = max((np.abs(gradient).max(initial=0.0) for gradient in alone.values()), default=0.0)
        return all(
            found[key].shape == gradient.shape
            and not (np.abs(found[key] - gradient) > SAME * max(largest, QUIET * loudness)).any()
            and np.array_equal(np.isnan(found[key]), np.isnan(gradient))
            for key, gradient in alone.items()
        )

    def _forward(self, use: Use, dy: Any = None, layout: Callable[[Any], Any] | None = None) -> _Pass:
        """One forward pass on fresh arrays."""
        arrays = [layout(fresh(array)) if layout else fresh(array) for array in use.arrays]
        y, cache = use.forward_with(arrays)
        return _Pass(arrays, use.arrays, [np.array(to_host(a)) for a in arrays], y, np.array(to_host(y)), cache, dy)

    def _backward(
        self,
        one: _Pass,
        before: Mapping[str, np.ndarray] | None = None,
        check: bool = False,
        layout: Callable[[Any], Any] | None = None,
    ) -> dict:
        """{name: gradient}, starting from `before` or from zero."""
        parameters = self.use.parameters
        for key, parameter in parameters.items():
            parameter.grad[...] = to_device(before[key]) if before else 0.0
        dy = to_device(np.array(one.dy))
        dy = layout(dy) if layout else dy
        gradients = dict(zip(self.use.inputs, self.use.backward_all(dy, one.cache), strict=True))
        found = {key: np.array(to_host(g)) for key, g in gradients.items()}
        if check:
            self._unchanged(one, one.given, "backward")
            if not _same(to_host(dy), one.dy):
                self._say("backward changes dy, which other layers still need: write dx = dy * mask, not dy *= mask")
            elif not _same(to_host(one.y), one.first):
                self._say("backward changes the output of forward, which other layers still need")
        return found | {key: np.array(to_host(p.grad)) for key, p in parameters.items()}

    def _unchanged(self, one: _Pass, before: Sequence[np.ndarray], who: str) -> None:
        """Whether arguments and parameters are what they were."""
        for name, array, given in zip(self.use.names, one.inputs, before, strict=True):
            if not np.array_equal(to_host(array), given, equal_nan=given.dtype.kind == "f"):
                self._say(f"{who} changes {name}, which other layers still need: write y = x * 2, not x *= 2")
        for key, parameter in self.use.parameters.items():
            if not np.array_equal(to_host(parameter.data), self.weights[key], equal_nan=True):
                self.moved.append(key)
                self._say(f"{who} changes the parameter {key}: only the optimizer may")
                parameter.data[...] = to_device(self.weights[key])

    def _agree(self, found: Mapping[str, np.ndarray], alone: Mapping[str, np.ndarray]) -> bool:
        return all(_same(found[key], gradient) for key, gradient in alone.items())

    def _kept_in(self, one: _Pass) -> str:
        """The attributes of the layer in which forward seems to keep something."""
        names = [
            f"self.{name}"
            for name, value in vars(self.use.layer).items()
            if isinstance(value, np.ndarray) and any(value.shape == a.shape for a in (one.y, *one.inputs))
        ]
        return f", not in {' and '.join(names)}" if names else ""

    def _say(self, sentence: str) -> None:
        if sentence not in self.broken:
            self.broken.append(sentence)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are the same up to rounding; NaN is like NaN."""
    if a.shape != b.shape:
        return False
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.array_equal(a, b, equal_nan=True)
    return relative_error(a, b) <= SAME


def hidden_arrays(layer: Layer) -> tuple[dict[str, Parameter], dict[str, np.ndarray]]:
    """What the layer holds and `parameters()` does not find -> ({name: Parameter}, {name: array of floats}).

    Plain arrays in the library's own layers are tables, which have been proven constant, and read-only ones cannot be
    learned.
    """
    found = {id(parameter) for parameter in layer.parameters()}
    own = {id(array) for parameter in layer.parameters() for array in (parameter.data, parameter.grad)}
    hidden, plain = {}, {}
    for name, value, owner in held("", layer, layer, set()):
        if isinstance(value, Parameter):
            if id(value) not in found:
                hidden[name] = value
        elif id(value) in own:
            continue
        elif value.dtype.kind == "f" and value.flags.writeable and type(owner).__module__.split(".")[0] != PACKAGE:
            plain[name] = value
    return hidden, plain


@contextlib.contextmanager
def restored(layer: Layer) -> Iterator[None]:
    """A `with` block after which weights, gradients and plain arrays of the layer are what they were."""
    hidden, plain = hidden_arrays(layer)
    kept = [(array, array.copy()) for array in plain.values()]
    with contextlib.ExitStack() as stack:
        for parameter in [*layer.parameters(), *hidden.values()]:
            stack.enter_context(holding(parameter, parameter.data.copy()))
        try:
            yield
        finally:
            for array, values in kept:
                array[...] = values


def held(name: str, value: Any, owner: Any, seen: set[int]) -> Iterator[tuple[str, Any, Any]]:
    """(name, Parameter or array, the object that holds it) for everything that can be reached from `value`."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Parameter | np.ndarray):
        yield name, value, owner
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from held(f"{name}[{key!r}]", item, owner, seen)
    elif isinstance(value, Sequence | set) and not isinstance(value, str | bytes):
        for number, item in enumerate(value):
            yield from held(f"{name}[{number}]", item, owner, seen)
    elif isinstance(value, Layer) or (hasattr(value, "__dict__") and not is_code(value)):
        shared = {key: item for cls in type(value).__mro__ for key, item in vars(cls).items()}
        own = {key: item for key, item in shared.items() if isinstance(item, Parameter | np.ndarray)}
        for key, item in {**own, **vars(value)}.items():
            yield from held(f"{name}.{key}" if name else key, item, value, seen)


def is_code(value: Any) -> bool:
    """Whether this is a function, a method or a class, which holds no array of a layer."""
    return inspect.isroutine(value) or inspect.isclass(value)
