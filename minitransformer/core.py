"""Parameter and Layer: the two ideas every other file builds on.

The protocol has three lines. forward returns what backward needs instead of hiding it in the layer, so one layer can
be used twice in a model and each use has its own cache:

    y, cache = layer.forward(x)             compute, and return what backward needs
    dx       = layer.backward(dy, cache)    add to every Parameter.grad, return dLoss/dx
    y        = layer(x)                     forward without the cache

The letters in shapes, such as (B, T, C), are explained in functional/__init__.py.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.checks import check_names


class Parameter:
    """A learned array: `data`, and `grad` of the same shape and dtype, to which every backward pass adds.

    A `frozen` parameter is not trained (see `Layer.freeze`): it gets no gradient, and an optimizer leaves it out.
    """

    def __init__(self, data: np.ndarray | xp.ndarray, frozen: bool = False) -> None:
        self.data: xp.ndarray = to_device(data)
        if not self.data.flags.c_contiguous:
            self.data = self.data.copy()  # so that `reshape(-1)` is a view
        self.frozen = frozen

    @functools.cached_property
    def grad(self) -> xp.ndarray:
        """dLoss/ddata, zeros at first. The array is made when it is first used: decoding needs none."""
        return xp.zeros_like(self.data)

    def zero_grad(self) -> None:
        """Set the gradient to zero."""
        self.grad[...] = 0

    def add_grad(self, gradient: xp.ndarray) -> None:
        """grad += gradient, unless the parameter is frozen."""
        if not self.frozen:
            self.grad += gradient

    def __repr__(self) -> str:
        return f"Parameter(shape={tuple(self.data.shape)}, dtype={self.data.dtype})"


class Layer:
    """A differentiable function that may own parameters and other layers.

    A subclass defines `forward(x, rng=None)`, which returns `(y, cache)`, and `backward(dy, cache)`, which returns dx.
    Parameters are found by walking the attributes: a Parameter, a Layer, or a list or tuple of them, in the order in
    which `__init__` sets them. There is no training mode: `rng` draws the masks of dropout, and `rng=None` means none.

    What a model gives to a layer of yours in this place (`allowed` is a mask, True = may attend, or None):

        a feed-forward network    forward(x, rng=rng)
        self-attention            forward(x, allowed, rng=rng)
        cross-attention           forward(x, memory, allowed, rng=rng), and backward returns (dx, dmemory)
        a norm                    forward(x)
    """

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the output and the cache that backward needs for this use of the layer: (y, cache)."""
        raise NotImplementedError(f"{type(self).__name__} has no forward yet")

    def backward(self, *inputs: Any, **options: Any) -> Any:
        """Add dLoss/dparameter to every `Parameter.grad` and return dLoss/dx, from dy = dLoss/dy and the cache."""
        raise NotImplementedError(f"{type(self).__name__} has no backward yet")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The output of forward without the cache, for use without a backward pass."""
        return self.forward(*inputs, **options)[0]

    def __repr__(self) -> str:
        first, *rest = self._tree()
        return "\n".join([f"{first}: {self.num_parameters():,} parameters", *rest])

    def _tree(self) -> list[str]:
        """A line for this layer, with the shapes of its own parameters, and below it those of the layers inside."""
        own = [f"{name} {tuple(p.data.shape)}" for name, p in self._members() if isinstance(p, Parameter)]
        lines = [" ".join([type(self).__name__, ", ".join(own)]).rstrip()]
        inside = [(name, child._tree()) for name, child in self.children()]
        for (_, tree), alike in itertools.groupby(inside, key=lambda pair: (pair[0].partition(".")[0], pair[1])):
            name, *others = (name for name, _ in alike)  # neighbors in a list that look alike
            to = f" to {others[-1].rpartition('.')[2]}" if others else ""
            lines += [f"  {name}{to}: {tree[0]}", *(f"  {line}" for line in tree[1:])]
        return lines

    def _members(self) -> Iterator[tuple[str, Any]]:
        """(name, attribute) in the order of `__init__`, the items of lists and tuples one by one."""
        for name, value in vars(self).items():
            if isinstance(value, (list, tuple)):
                yield from ((f"{name}.{i}", item) for i, item in enumerate(value))
            else:
                yield name, value

    def children(self) -> Iterator[tuple[str, "Layer"]]:
        """(name, Layer) for each layer directly inside this one, in the order of `__init__`."""
        return ((name, member) for name, member in self._members() if isinstance(member, Layer))

    def _named_uses(self) -> Iterator[tuple[str, Parameter]]:
        """(name, Parameter) for each use of a parameter in this layer and in the layers inside it."""
        for name, member in self._members():
            if isinstance(member, Parameter):
                yield name, member
            elif isinstance(member, Layer):
                yield from ((f"{name}.{inner}", parameter) for inner, parameter in member._named_uses())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """(name, Parameter) for each parameter once. A parameter that several layers share has its first name."""
        seen = set()
        for name, parameter in self._named_uses():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def parameters(self) -> list[Parameter]:
        """Every parameter, once."""
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self) -> int:
        """The number of learned numbers; a shared matrix counts once."""
        return sum(parameter.data.size for parameter in self.parameters())

    def freeze(self, *names: str, frozen: bool = True) -> None:
        """Freeze the parameters of these layers or parameters, such as "encoder" or "output.W"; without names, all.

        A frozen parameter gets no gradient, and costs no time in the backward pass of a matrix product; gradients still
        pass through its layer to the input, down to the lowest layer of a model that is trained. An optimizer that is
        made afterwards has no state for it, and leaves it as it is. frozen=False undoes it. Raises ValueError for a
        name that this layer does not have.
        """
        uses = list(self._named_uses())
        chosen = [] if names else [parameter for _, parameter in uses]
        for name in names:
            found = [parameter for use, parameter in uses if f"{use}.".startswith(f"{name}.")]
            if not found:
                known = ", ".join(dict.fromkeys(use.partition(".")[0] for use, _ in uses))
                raise ValueError(
                    f"there is nothing called {name!r} to freeze in this {type(self).__name__}: it has {known}"
                )
            chosen += found
        for parameter in chosen:
            parameter.frozen = frozen

    @property
    def is_trained(self) -> bool:
        """Whether any parameter of this layer, or of one inside it, is not frozen."""
        return any(not parameter.frozen for _, parameter in self._named_uses())

    def zero_grad(self) -> None:
        """Set every gradient to zero: every training step does this before its backward pass."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def state_dict(self) -> dict[str, np.ndarray]:
        """{name: a copy of the data on the host} for every parameter."""
        return {name: np.array(to_host(parameter.data)) for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Copy `state` into the parameters in place, so that views stay views and shared parameters stay shared.

        Raises ValueError if a name is missing or unexpected, or if a shape or dtype differs, and TypeError if `state`
        is not a dictionary of arrays. In both cases no parameter has changed.
        """
        own = dict(self.named_parameters())
        check_names(f"state does not fit this {type(self).__name__}", state, own)
        for name, parameter in own.items():
            given, wanted = state[name], parameter.data
            if not hasattr(given, "dtype"):
                raise TypeError(f"state must have arrays, got {type(given).__name__} for {name}")
            if given.shape != wanted.shape or given.dtype != wanted.dtype:
                raise ValueError(
                    f"state has {name} as {given.dtype}{tuple(given.shape)}, "
                    f"this model needs {wanted.dtype}{tuple(wanted.shape)}"
                )
        for name, parameter in own.items():
            parameter.data[...] = to_device(state[name])
