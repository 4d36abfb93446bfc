"""Anything that computes y and sends dy back, as a Layer, so that the judge of layers can try it.

    an object        y, cache = piece.forward(*inputs)     dx = piece.backward(dy, cache)
    two functions    y, cache = forward(*inputs)           dx = backward(dy, cache)
    one function     y, back = piece(*inputs)              dx = back(dy)

Weights are arrays inside the object that have their gradients beside them (W and dW, or data and grad), or they are
inputs: arrays, or dictionaries, lists and tuples of arrays, whose gradients come back in the same form.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.judge.use import LIBRARY

EMPTY = CellType()  # a variable around a function that has no value yet


class Weight(Parameter):
    """An array of somebody's own object that has its gradient beside it, under these two names."""

    def __init__(self, owner: Any, data: str, grad: str) -> None:
        self.owner, self.names, self.frozen = owner, (data, grad), False

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The array as it is now."""
        return getattr(self.owner, self.names[0])

    @data.setter
    def data(self, array: Any) -> None:
        setattr(self.owner, self.names[0], array)

    @property
    def grad(self) -> Any:
        """The gradient as it is now."""
        return getattr(self.owner, self.names[1])

    @grad.setter
    def grad(self, array: Any) -> None:
        setattr(self.owner, self.names[1], array)


class Piece(Layer):
    """`made` is a piece, and `items` are the inputs that its forward is called with.

    forward takes the arrays of floats among them, and then all other arrays; backward returns the gradients of the
    former. Dictionaries, lists and tuples of arrays are weights: they become Parameters.
    """

    def __init__(self, made: Any, items: Sequence[Any] = ()) -> None:
        run, back = made if is_pair(made) else (getattr(made, "forward", made), getattr(made, "backward", None))
        if not callable(run):
            raise TypeError(f"{type(made).__name__} is not a piece: it has no forward")
        self.run, self.back = run, back
        seen = set[int]()
        reached = [found for part in (run, back, made) for found in reachable("", part, part, seen)]
        self.reached = with_own_names((name, value) for name, value, _ in reached)  # the judge looks here, too
        self.found = with_own_names(weights_among(reached))
        self.trees = [i for i, item in enumerate(items) if is_tree(item)]
        self.items = [mapped(_parameter, item) if i in self.trees else item for i, item in enumerate(items)]
        arrays = [i for i, item in enumerate(items) if isinstance(item, np.ndarray)]
        self.differentiable = [i for i in arrays if items[i].dtype.kind == "f"]
        self.places = [*self.differentiable, *(i for i in arrays if i not in self.differentiable)]
        self.inputs = [np.array(items[i], np.float64) for i in self.differentiable]
        self.context = [items[i] for i in self.places[len(self.inputs) :]]
        for i in self.places:
            self.items[i] = None

    @property
    def input_names(self) -> list[str]:
        """What forward calls the inputs that have gradients."""
        return self.names_of(self.differentiable)

    def names_of(self, places: Sequence[int]) -> list[str]:
        """What forward calls the inputs at these places."""
        names = list(inspect.signature(self.run).parameters)
        return [names[i] if i < len(names) else f"input {i}" for i in places]

    def _named_uses(self) -> Iterator[tuple[str, Parameter]]:
        for i in self.trees:
            yield from leaves(self.items[i])
        yield from self.found.items()

    def to_float64(self) -> None:
        """Let all weights, and their gradients, be float64."""
        for parameter in self.parameters():
            parameter.data = np.array(parameter.data, np.float64)
            parameter.grad = np.zeros_like(parameter.data)

    def forward(self, *arrays: Any, **options: Any) -> Any:
        """What the piece returns, and should be (y, cache)."""
        called = list(self.items)
        for i in self.trees:
            called[i] = mapped(lambda p: p.data, called[i])
        for place, array in zip(self.places, arrays, strict=True):
            called[place] = array
        return self.run(*called)

    def backward(self, dy: Any, cache: Any) -> tuple:
        """Add the gradients of dictionaries and lists -> those of the other inputs."""
        if self.back is None and not callable(cache):
            raise TypeError("there is no backward, and forward returns (y, cache) instead of (y, back)")
        returned = cache(dy) if self.back is None else self.back(dy, cache)
        gradients = dict.fromkeys(range(len(self.items)))
        wanted = sorted(self.differentiable + self.trees)
        several = returned if isinstance(returned, tuple) else (returned,)
        if wanted and len(several) not in (len(wanted), len(self.items)):
            names = ", ".join(self.names_of(wanted))
            raise ValueError(
                f"backward returns {len(several)} gradients, but these inputs have one: {names} (a mask has none if it "
                "is an array of booleans)"
            )
        gradients |= dict(zip(wanted if len(several) == len(wanted) else gradients, several, strict=False))
        for i in self.trees:
            given = dict(leaves(gradients[i]))
            for name, parameter in leaves(self.items[i]):
                if given.get(name) is None:
                    raise ValueError(f"backward returns no gradient for {name}")
                if np.shape(given[name]) != parameter.data.shape:
                    shapes = f"{np.shape(given[name])}, not {parameter.data.shape}"
                    raise ValueError(f"the gradient of {name} has the shape {shapes}")
                parameter.add_grad(given[name])
        return tuple(gradients[i] for i in self.differentiable)


def is_pair(made: Any) -> bool:
    """Whether these are two functions, forward and backward."""
    return isinstance(made, tuple) and len(made) == 2 and all(map(callable, made))


def weights_among(reached: Sequence[tuple[str, Any, Any]]) -> Iterator[tuple[str, Parameter]]:
    """(name, weight) of each array that has its gradient beside it, in the same object."""
    for name, value, owner in reached:
        *place, attribute = name.split(".")
        partner = "grad" if attribute == "data" else f"d{attribute}"
        if isinstance(value, Parameter):
            yield name, value
        elif attribute in held_by(owner) and np.shape(getattr(owner, partner, None)) == value.shape:
            yield ".".join(place) if attribute == "data" else name, Weight(owner, attribute, partner)


def with_own_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """{name: value}, where a name that is taken already gets a prime."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        while name in named:
            name += "'"
        named[name] = value
    return named


def reachable(name: str, value: Any, owner: Any, seen: set[int]) -> Iterator[tuple[str, Any, Any]]:
    """(name, Parameter or array, what holds it) for all that a piece holds, and for what its functions use."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inside: dict[str, Any] = {}
    if isinstance(value, Parameter | np.ndarray):
        yield name, value, owner
    elif isinstance(value, Mapping):
        inside = {f"{name}[{key!r}]": item for key, item in value.items()}
    elif isinstance(value, Sequence | set) and not isinstance(value, str | bytes):
        inside = {f"{name}[{number}]": item for number, item in enumerate(value)}
    elif isinstance(value, MethodType):
        yield from reachable(name, value.__self__, value.__self__, seen)
        yield from reachable(name, value.__func__, value.__func__, seen)
    elif isinstance(value, FunctionType):
        inside = used_by(value, name)
    else:
        inside = {f"{name}.{key}".lstrip("."): item for key, item in held_by(value).items()}
    for place, item in inside.items():
        yield from reachable(place, item, value, seen)


def held_by(value: Any) -> dict[str, Any]:
    """{name: value} of an object's attributes, also those in slots, and of what its class holds for it."""
    if isinstance(value, type | ModuleType):
        return {}
    shared = {key: item for cls in type(value).__mro__ for key, item in vars(cls).items() if not key.startswith("__")}
    slots = [key for key, item in shared.items() if inspect.ismemberdescriptor(item) and hasattr(value, key)]
    own = {key: item for key, item in shared.items() if isinstance(item, Parameter | np.ndarray | FunctionType)}
    return own | {key: getattr(value, key) for key in slots} | getattr(value, "__dict__", {})


def used_by(function: FunctionType, name: str) -> dict[str, Any]:
    """{name: value} of what somebody's own function, which has this name, takes from around it."""
    if function.__code__.co_filename.startswith(LIBRARY) or "site-packages" in function.__code__.co_filename:
        return {}
    known = {key: function.__globals__[key] for key in names_in(function.__code__) if key in function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    around = {key: cell.cell_contents for key, cell in cells if cell != EMPTY}
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty}
    return known | {f"{name}.{key}".lstrip("."): item for key, item in (around | defaults).items()}


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function and the functions inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def is_tree(item: Any) -> bool:
    """Whether an input holds arrays of weights; a tuple may also be a size."""
    arrays = (isinstance(leaf, np.ndarray) for _, leaf in leaves(item))
    return isinstance(item, dict | list) or (isinstance(item, tuple) and any(arrays))


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same dictionaries, lists and tuples with function(leaf) instead of each leaf."""
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return getattr(tree, "_make", type(tree))([mapped(function, value) for value in tree])
    return function(tree)


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name, leaf) for each leaf of dictionaries, lists and tuples, such as "layers.0.W"."""
    if isinstance(tree, dict | list | tuple):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, f"{name}.{key}".lstrip("."))
    else:
        yield name, tree


def _parameter(leaf: Any) -> Parameter:
    if getattr(leaf, "dtype", np.dtype(int)).kind != "f":
        raise TypeError(f"dictionaries and lists hold weights, arrays of floats, but there is a {type(leaf).__name__}")
    return Parameter(leaf)
