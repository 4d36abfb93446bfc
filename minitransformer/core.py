"""Parameter and Layer: the two ideas every other file builds on.

The protocol has three lines. What backward needs is returned by forward, not hidden in the layer, so that a layer
may be used twice in one model and each use keeps its own memory:

    y, cache = layer.forward(x)             use it and remember
    dx       = layer.backward(dy, cache)    adds to Parameter.grad, returns dLoss/dx
    y        = layer(x)                     just use it; the cache is dropped at once
"""

import copy
import math

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.checks import check_names


class Parameter:
    """An array that is learnt: `data`, and `grad` of the same shape and dtype, to which every backward adds.

    Clearing millions of gradients only to add to them would cost more than some layers, so `zero_grad` merely notes
    that the gradient is zero. It is cleared when somebody looks at it, or overwritten by the first backward pass that
    asks `overwritable`. Until there is a gradient, there is no array for it.
    """

    def __init__(self, data):
        self.data = to_device(data)
        if not self.data.flags.c_contiguous:
            self.data = self.data.copy()  # so that `reshape(-1)` is a view
        self._grad = None  # or an array like `data`
        self._is_zero = False  # whether the gradient is zero, whatever its array holds

    @property
    def grad(self):
        """The gradient, an array like `data`."""
        if self._grad is None:
            self._grad = xp.zeros_like(self.data)
        elif self._is_zero:
            self._grad[...] = 0
        self._is_zero = False
        return self._grad

    @grad.setter
    def grad(self, array):
        """Copy `array` into the gradient's own array, which a vector of all gradients may be looking at."""
        if array is not self._grad:  # as it is after `grad += x`
            self.grad[...] = array

    def zero_grad(self):
        """Make the gradient zero, without touching its array yet."""
        self._is_zero = True

    def take_grad(self):
        """The gradient, or None where there is none: from here on there is none, and its array is the caller's."""
        gradient = None if self._is_zero else self._grad
        self._grad = None
        return gradient

    def overwritable(self):
        """The gradient's array if the gradient is zero, to write one's own into it before `add_grad`; else None."""
        return self._grad if self._is_zero else None

    def add_grad(self, gradient):
        """grad += gradient, an array that is ours from now on.

        It may be the one that `overwritable` gave, with the sum already in it.
        """
        if gradient is self._grad or self._grad is None:
            self._grad, self._is_zero = gradient, False
        else:
            self.grad += gradient

    def __repr__(self):
        return f"Parameter(shape={tuple(self.data.shape)}, dtype={self.data.dtype})"


class Layer:
    """A differentiable function that may own parameters and other layers.

    A subclass defines `forward(x, rng=None)`, which returns `(y, cache)`, and `backward(dy, cache)`. Parameters are
    found by walking the attributes: a Parameter, a Layer, or a list or tuple of them, in the order in which `__init__`
    sets them. There is no training mode: `rng=None` means that dropout is the identity.
    """

    def forward(self, x, rng=None):
        """Return the output and what backward needs to remember of this use."""
        raise NotImplementedError(f"{type(self).__name__} has no forward yet")

    def backward(self, dy, cache):
        """Add dLoss/dparameter to every `Parameter.grad` and return dLoss/dx, where dy is dLoss/dy."""
        raise NotImplementedError(f"{type(self).__name__} has no backward yet")

    def __call__(self, *inputs, **options):
        """The output alone, for when no backward will follow."""
        return self.forward(*inputs, **options)[0]

    def _members(self):
        """(name, attribute) in the order of `__init__`, the items of lists and tuples one by one."""
        for name, value in vars(self).items():
            if isinstance(value, (list, tuple)):
                yield from ((f"{name}.{i}", item) for i, item in enumerate(value))
            else:
                yield name, value

    def children(self):
        """(name, Layer) for each layer directly inside this one, in the order of `__init__`."""
        return ((name, member) for name, member in self._members() if isinstance(member, Layer))

    def _named_uses(self):
        """(name, Parameter) for each use of a parameter in this layer and all inside it."""
        for name, member in self._members():
            if isinstance(member, Parameter):
                yield name, member
            elif isinstance(member, Layer):
                yield from ((f"{name}.{inner}", parameter) for inner, parameter in member._named_uses())

    def named_parameters(self):
        """(name, Parameter) for each parameter, once, even if several layers share it: the first name counts."""
        seen = set()
        for name, parameter in self._named_uses():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def parameters(self):
        """Every parameter, once."""
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self):
        """How many numbers are learnt; a shared matrix counts once."""
        return sum(parameter.data.size for parameter in self.parameters())

    def replica(self):
        """This layer once more, for another thread: its parameters share all `data` and have gradients of their own."""
        return copy.deepcopy(self, {id(parameter): Parameter(parameter.data) for parameter in self.parameters()})

    def zero_grad(self):
        """Set every gradient to zero, as each training step must before its backward passes add to them."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def state_dict(self):
        """{name: a copy of the data on the host} for every parameter."""
        return {name: np.array(to_host(parameter.data)) for name, parameter in self.named_parameters()}

    def load_state_dict(self, state):
        """Copy `state` into the parameters in place, so that views and shared parameters stay what they are.

        Raises ValueError, before anything is changed, if a name is missing or unexpected or a shape or dtype differs.
        """
        own = dict(self.named_parameters())
        check_names(f"state does not fit this {type(self).__name__}", state, own)
        for name, parameter in own.items():
            given, wanted = state[name], parameter.data
            if not hasattr(given, "dtype"):
                raise TypeError(f"state must have arrays, but {name} is a {type(given).__name__}")
            if given.shape != wanted.shape or given.dtype != wanted.dtype:
                raise ValueError(
                    f"state has {name} as {given.dtype}{tuple(given.shape)}, "
                    f"this model needs {wanted.dtype}{tuple(wanted.shape)}"
                )
        for name, parameter in own.items():
            parameter.data[...] = to_device(state[name])


class FlatParameter(Parameter):
    """One long vector whose pieces are the `data` and `grad` of other parameters."""

    def __init__(self, pieces):
        super().__init__(xp.concatenate([piece.data.reshape(-1) for piece in pieces]))
        self.pieces = list(pieces)
        self._grad = xp.zeros_like(self.data)
        start = 0
        for piece in pieces:
            shape = piece.data.shape
            part = slice(start, start + math.prod(shape))
            self._grad[part] = piece.grad.reshape(-1)
            piece.data = self.data[part].reshape(shape)
            piece._grad = self._grad[part].reshape(shape)
            start = part.stop

    @property
    def grad(self):
        """The vector of all pieces' gradients; those that are only noted as zero are cleared first."""
        for piece in self.pieces:
            _ = piece.grad
        return self._grad

    @grad.setter
    def grad(self, array):
        """Copy `array` into the vector, which stays where the pieces see it."""
        if array is not self._grad:  # as it is after `grad *= 2`
            self.grad[...] = array

    def zero_grad(self):
        """Make all pieces' gradients zero."""
        for piece in self.pieces:
            piece.zero_grad()


def flatten_parameters(layer):
    """One long Parameter whose pieces are the parameters of `layer` from now on -> FlatParameter.

    Each `data` and `grad` of `layer` becomes a view into the one vector, with its values kept, so that clipping and
    Adam are a few calls on one array in place of a few for each of hundreds of small ones.
    """
    return FlatParameter(layer.parameters())
