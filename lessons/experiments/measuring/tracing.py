"""Counting while the code runs: multiply-adds, and how many operations must wait for each other.

Every array of a traced computation is a `Traced` array, a NumPy array that reports each operation on it to a `Trace`.
The trace keeps one number for each entry of each array: the length of the chain of operations that made this entry.
Views share their numbers as they share their memory, so writing one time step into an array of all time steps makes no
other step depend on it. Nothing is quoted or estimated: an operation that the trace does not know raises
NotImplementedError.
"""

import contextlib
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minitransformer import Layer, use_backend
from minitransformer.gradcheck.holding import holding

CREATED = {"arange", "empty", "eye", "full", "ones", "tri", "zeros"}
# functions that only place numbers elsewhere, and methods
MOVES = {
    *(np.broadcast_to, np.concatenate, np.copy, np.expand_dims, np.flip, np.moveaxis, np.repeat),
    *(np.reshape, np.roll, np.split, np.squeeze, np.stack, np.swapaxes, np.take, np.take_along_axis, np.transpose),
    *(np.tril, np.triu),
}
MOVING_METHODS = ("copy", "flatten", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "take", "transpose")
CREATED_LIKE = {np.empty_like, np.full_like, np.ones_like, np.zeros_like}
PASSED_ON = {np.may_share_memory, np.ndim, np.result_type, np.shape, np.shares_memory}  # they return no array


class Trace:
    """What was counted, and the chain of every entry.

    With `shortest`, the numbers are the lengths of the shortest chains that begin at an entry of `starts_from`, and
    infinity for what does not depend on it; else of the longest chains. With `products_only`, only matrix products
    count as operations, and `products` has the two factors of each, except where it is a sum.
    """

    def __init__(self, *, shortest: bool = False, products_only: bool = False) -> None:
        self.multiply_adds: Counter[str] = Counter()  # by the weight in a product, or "activations", or "sums"
        self.operations = 0
        self.longest = 0.0
        self.products_only = products_only
        self.products: list[tuple[np.ndarray, np.ndarray]] = []
        self.constant = math.inf if shortest else 0.0  # the chain of what nothing was computed for
        self.combine: np.ufunc = np.minimum if shortest else np.maximum
        self._chains: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by the id of the array that owns the memory
        self._weights: dict[int, str] = {}

    @contextlib.contextmanager
    def recording(self, layer: Layer | None = None) -> Iterator["Trace"]:
        """Inside a `with` block the library's functions, and the parameters of `layer`, make Traced arrays."""
        active, Traced.recorder = Traced.recorder, self
        try:
            with contextlib.ExitStack() as stack:
                for name, parameter in layer.named_parameters() if layer else ():
                    self._weights[id(_owner(parameter.data))] = name
                    stack.enter_context(holding(parameter, self.watch(parameter.data)))
                with use_backend(_TracingNumPy()):
                    yield self
        finally:
            Traced.recorder = active

    def watch(self, array: np.ndarray) -> "Traced":
        """`array` as a Traced array whose chains begin here."""
        self.set_chains(array, self.constant)
        return array.view(Traced)

    def starts_from(self, array: "Traced", where: Any = ...) -> None:
        """Chains of length 0 begin at the entries `where` of `array`."""
        self.chains(array)[where] = 0.0

    def chains(self, array: Any) -> np.ndarray:
        """The chain of every entry of `array`, of its shape: a view, or `constant` for what was not computed here."""
        if not isinstance(array, np.ndarray):
            return np.asarray(self.constant, np.float32)
        owner = _owner(array)
        if id(owner) not in self._chains:
            if isinstance(array, Traced):
                raise NotImplementedError("an array was made by an operation that the trace does not know")
            return np.full(array.shape, self.constant, np.float32)
        chains = self._chains[id(owner)][1]
        offset = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // owner.itemsize
        strides = [stride // owner.itemsize * chains.itemsize for stride in array.strides]
        return np.lib.stride_tricks.as_strided(chains[offset if array.size else 0 :], array.shape, strides)

    def set_chains(self, array: np.ndarray, chains: Any) -> None:
        """Note the chain of every entry of `array`."""
        owner = _owner(array)
        if id(owner) not in self._chains:  # the owner is kept, so that no other array gets its id
            self._chains[id(owner)] = owner, np.full(owner.size, self.constant, np.float32)
        self.chains(array)[...] = chains

    def finish(self, result: np.ndarray, chains: np.ndarray, is_product: bool = False) -> "Traced":
        """Note an operation whose operands have these chains, broadcastable to its result."""
        step = float(is_product or not self.products_only)
        self.operations += 1
        self.set_chains(result, chains + step)
        finite = chains[np.isfinite(chains)]
        self.longest = max(self.longest, float(finite.max(initial=0.0)) + step)
        return result.view(Traced)

    def inherit(self, result: Any, operands: tuple[Any, ...]) -> None:
        """A weight that was scaled, or otherwise changed entry by entry, keeps its name."""
        for operand in operands:
            name = self._weights.get(id(_owner(operand))) if isinstance(operand, np.ndarray) else None
            if name and np.shape(result) == operand.shape:
                self._weights[id(_owner(result))] = name

    def count(self, amount: int, operands: tuple[Any, ...]) -> None:
        """Add multiply-adds of a product."""
        names = [self._weights.get(id(_owner(operand))) for operand in operands if isinstance(operand, np.ndarray)]
        is_sum = any(operand.ndim < 2 or 1 in operand.shape[-2:] for operand in operands)
        kind = next(filter(None, names), "sums" if is_sum else "activations")
        self.multiply_adds[kind] += amount
        if self.products_only and not is_sum:
            self.products.append(operands)


class Traced(np.ndarray):
    """An array that reports to the current trace; see the top of this file."""

    recorder: Trace = Trace()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute as NumPy does, and note what was computed."""
        trace, out = Traced.recorder, options.pop("out", (None,))
        plain = [_plain(x) for x in inputs]
        options = {name: _plain(value) for name, value in options.items()}
        if method == "__call__" and ufunc is np.matmul:
            chains = _matmul_chains(trace, *inputs)
        elif method == "__call__":
            chains = functools.reduce(trace.combine, [trace.chains(x) for x in (*inputs, *options.values())])
        elif method == "reduce":
            axes = {"axis": options.get("axis", 0), "keepdims": options.get("keepdims", False)}
            chains = trace.combine.reduce(trace.chains(inputs[0]), **axes)
        else:
            raise NotImplementedError(f"the trace does not know {ufunc.__name__}.{method}")
        chains = np.array(chains)  # a copy, as the result may be written over an operand
        target = {} if out[0] is None else {"out": tuple(_plain(x) for x in out)}
        result = getattr(ufunc, method)(*plain, **options, **target)
        if ufunc is np.matmul:
            trace.count(np.size(result) * plain[0].shape[-1], tuple(plain))
        else:
            trace.inherit(result, inputs)
        traced = trace.finish(_plain(out[0]) if target else np.asarray(result), chains, ufunc is np.matmul)
        return out[0] if target else traced

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """The functions of NumPy that are no ufuncs."""
        trace = Traced.recorder
        if function in PASSED_ON:
            return function(*_plain(args), **_plain(options))
        if function in CREATED_LIKE:
            return trace.watch(function(*_plain(args), **_plain(options)))
        if function in MOVES:
            return _move(lambda *arrays: function(*arrays, **_plain(options)), *args)
        if function is np.where:
            result = np.where(*_plain(args))
            return trace.finish(result, functools.reduce(trace.combine, map(trace.chains, args)))
        if function is np.einsum:
            return _einsum(trace, *args)
        if function is np.copyto:
            target, source = args
            np.copyto(trace.chains(target), trace.chains(source), where=_plain(options.get("where", True)))
            return np.copyto(_plain(target), _plain(source), **_plain(options))
        raise NotImplementedError(f"the trace does not know {function.__name__}")

    def __getitem__(self, key: Any) -> Any:
        """A view, or with arrays as key a copy."""
        return _move(lambda x: np.asarray(x[_plain(key)]), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Numbers that are placed here keep their chains."""
        key = _plain(key)
        _plain(self)[key] = _plain(value)
        Traced.recorder.chains(self)[key] = Traced.recorder.chains(value)

    def astype(self, dtype: Any, **options: Any) -> Any:  # type: ignore[override]
        """The same numbers in another dtype."""
        result = _plain(self).astype(dtype, **options)
        Traced.recorder.set_chains(result, Traced.recorder.chains(self))
        return result.view(Traced)


def _add_moving_method(name: str) -> None:
    def method(self: Traced, *args: Any, **options: Any) -> Any:
        return _move(lambda x: getattr(x, name)(*args, **options), self)

    setattr(Traced, name, method)


for _name in MOVING_METHODS:
    _add_moving_method(_name)


class _TracingNumPy:
    """NumPy as the array library in use, whose new arrays are Traced."""

    __name__ = "numpy"

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(np, name)
        if name not in CREATED:
            return attribute
        return lambda *args, **options: Traced.recorder.watch(attribute(*args, **options))

    @staticmethod
    def ascontiguousarray(array: np.ndarray) -> Traced:
        """As NumPy's, which would return a plain array."""
        return _move(np.ascontiguousarray, array)


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of this view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _plain(value: Any) -> Any:
    """`value` with plain NumPy arrays for Traced ones, also inside tuples, lists and dictionaries."""
    if isinstance(value, Traced):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def _move(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), which only places numbers elsewhere: a view, or a copy with the chains of what it copies."""
    trace = Traced.recorder
    results = function(*_plain(args))
    moved = [results] if isinstance(results, np.ndarray) else list(results)
    chains: Any = None
    for i, result in enumerate(moved):
        if id(_owner(result)) not in trace._chains:
            chains = function(*_chains_of(trace, args)) if chains is None else chains
            trace.set_chains(result, chains if isinstance(results, np.ndarray) else chains[i])
    moved = [result.view(Traced) for result in moved]
    return moved[0] if isinstance(results, np.ndarray) else moved


def _chains_of(trace: Trace, value: Any) -> Any:
    """`value` with the chains of every floating-point array in it; integers and booleans are indices."""
    if isinstance(value, np.ndarray):
        return trace.chains(value) if isinstance(value, Traced) or value.dtype.kind == "f" else value
    return type(value)(_chains_of(trace, item) for item in value) if isinstance(value, tuple | list) else value


def _matmul_chains(trace: Trace, a: Any, b: Any) -> np.ndarray:
    """Entry (i, j) of a product waits for row i of a and column j of b."""
    left, right = trace.chains(a), trace.chains(b)
    rows = trace.combine.reduce(left, axis=-1)
    columns = trace.combine.reduce(right, axis=-2 if right.ndim > 1 else -1)
    rows = rows[..., None] if right.ndim > 1 else rows
    columns = columns[..., None, :] if left.ndim > 1 and right.ndim > 1 else columns
    return trace.combine(rows, columns)


def _einsum(trace: Trace, subscripts: str, *operands: Any) -> Traced:
    """Sums of products over the letters that are missing on the right side."""
    axes = max(operand.ndim for operand in operands) - len(subscripts.split(",")[0].replace("...", ""))
    inputs, output = subscripts.replace("...", "ABCDEFGH"[:axes]).split("->")
    names = inputs.split(",")
    letters = output + "".join(sorted(set("".join(names)) - set(output)))
    chains: list[np.ndarray] = []
    lengths: dict[str, int] = {}
    for name, operand in zip(names, operands, strict=True):
        lengths |= dict(zip(name, operand.shape, strict=True))
        order = np.transpose(trace.chains(operand), [name.index(letter) for letter in letters if letter in name])
        chains.append(order[tuple(slice(None) if letter in name else None for letter in letters)])
    summed = tuple(range(len(output), len(letters)))
    trace.multiply_adds["sums"] += math.prod(lengths.values())
    result = np.asarray(np.einsum(subscripts, *_plain(operands)))
    return trace.finish(result, trace.combine.reduce(functools.reduce(trace.combine, chains), axis=summed))
