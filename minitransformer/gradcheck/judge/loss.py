"""The scalar L = sum(dy * y) that a gradient check differentiates, at one point.

dy is fixed and random: an all-ones dy would find nothing, because the outputs of a softmax or a LayerNorm always have
the same sum.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Parameter

NEARBY = 0.01  # how far another point is, relative to the spread of each tensor
REPEATABLE = 1e-9  # two forwards may differ by this, relative to the largest output
FACTORS = (3.0, 5.0, -7.0, 2.0**-40, 2.0**20)  # of dy: right gradients are as many times as large
UPSTREAM, OTHER_POINTS = 102, 104  # streams of random numbers: dy must have nothing to do with weights or inputs


class Loss:
    """L as a function of some of its tensors, the others held fixed. Tensors are float64 arrays on the host.

    `values` are those of all inputs and parameters. A Loss at other values than the parameters' own sets them for the
    length of each forward and backward pass.
    """

    def __init__(
        self,
        forward: Callable[..., tuple],
        inputs: Iterable[str],
        parameters: Mapping[str, Parameter],
        values: Mapping[str, np.ndarray],
        seed: int,
        dy: Any = None,
    ) -> None:
        self.forward, self.inputs, self.parameters, self.values = forward, tuple(inputs), parameters, values
        self.seed, self.dy = seed, dy
        y = self.output()
        if dy is None:
            self.dy = to_device(np.asarray(self.generator(UPSTREAM).standard_normal(y.shape)))
        self.first = np.array(to_host(y))

    @property
    def loudness(self) -> float:
        """The size of L's terms."""
        return float(np.linalg.norm(to_host(self.dy) * self.first))

    @property
    def largest_dy(self) -> float:
        """The largest entry of dy."""
        return float(np.abs(to_host(self.dy)).max(initial=0.0))

    def generator(self, *stream: int) -> np.random.Generator:
        """Random numbers for one purpose, the same for each seed."""
        return np.random.default_rng([self.seed, *stream])

    def repeats(self) -> bool:
        """Whether the forward still gives the output that it gave first."""
        again = to_host(self.output())
        most = REPEATABLE * np.abs(self.first).max(initial=0.0)
        return again.shape == self.first.shape and bool(np.abs(again - self.first).max(initial=0.0) <= most)

    def _at(self, values: Mapping[str, Any], action: Callable[[], Any]) -> Any:
        """What `action` returns while the parameters have the arrays of `values`."""
        own = [parameter.data for parameter in self.parameters.values()]
        try:
            for key, parameter in self.parameters.items():
                parameter.data = values[key]
            return action()
        finally:
            for parameter, data in zip(self.parameters.values(), own, strict=True):
                parameter.data = data

    def _run(self, values: Mapping[str, Any]) -> tuple:
        """The forward pass -> (y, cache). It gets copies of its inputs, in case it writes into them."""
        return self.forward(*[_copy(values[key]) for key in self.inputs])

    def output(self, changed: Mapping[str, np.ndarray] | None = None) -> Any:
        """y with the arrays of `changed` {name: array} instead of its own; all are complex if one of them is.

        A complex result cannot be stored in place into a real array.
        """
        changed = changed or {}
        dtype = np.complex128 if any(map(np.iscomplexobj, changed.values())) else np.float64
        values = {
            key: to_device(changed.get(key, value).astype(dtype, copy=False)) for key, value in self.values.items()
        }
        return self._at(values, lambda: self._run(values)[0])

    def __call__(self, changed: Mapping[str, np.ndarray]) -> Any:
        """L with the arrays of `changed`, a number."""
        return to_host((self.dy * self.output(changed)).sum())[()]

    def terms(self, changed: Mapping[str, np.ndarray]) -> np.ndarray:
        """The terms dy * y of L, NaN where the forward is not defined.

        In a difference of terms, outputs that have not changed cancel exactly; in a difference of sums they do not.
        """
        try:
            return to_host(self.dy * self.output(changed))
        except (ValueError, ArithmeticError):  # such as math.log of a negative number
            return np.full(np.shape(self.dy), np.nan)

    def along(self, v: Mapping[str, np.ndarray], t: Any) -> dict[str, np.ndarray]:
        """The tensors of v {name: array} at values + t v."""
        return {key: self.values[key] + t * step for key, step in v.items()}

    def gradients(self, backward: Callable[..., Any], dy: Any = None) -> dict[str, np.ndarray]:
        """{name: gradient} by the backward pass under test, done twice, for another dy if one is given.

        The gradient of a parameter is what the second pass adds to `Parameter.grad`. This also finds a backward pass
        that assigns instead of adding, and so forgets all uses of a layer except the last.
        """
        for parameter in self.parameters.values():
            parameter.zero_grad()
        dy = self.dy if dy is None else dy
        values = {key: to_device(value) for key, value in self.values.items()}
        for _ in range(2):
            before = {key: np.array(to_host(parameter.grad)) for key, parameter in self.parameters.items()}
            returned = as_tuple(self._at(values, lambda: backward(dy.copy(), self._run(values)[1])))
        if len(returned) != len(self.inputs):
            raise ValueError(f"backward returned {len(returned)} gradients for {len(self.inputs)} inputs")
        gradients = {key: np.array(to_host(gradient)) for key, gradient in zip(self.inputs, returned, strict=True)}
        gradients.update({key: to_host(parameter.grad) for key, parameter in self.parameters.items()})
        for key, gradient in gradients.items():
            if np.shape(gradient) != self.values[key].shape:
                raise ValueError(f"the gradient of {key} has shape {np.shape(gradient)}, not {self.values[key].shape}")
        for key in before:
            gradients[key] = gradients[key] - before[key]
        return gradients

    def others(self, backward: Callable[..., Any]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        """(what another dy is like, the gradients for dy as they follow from it): backward is linear in dy."""
        for factor in FACTORS:
            gradients = self.gradients(backward, factor * self.dy)
            yield f"if dy is {factor:.2g} times as large", {key: found / factor for key, found in gradients.items()}
        shape, numbers = self.dy.shape, np.arange(self.dy.size)
        width, half = shape[-1] if len(shape) > 1 else 1, self.dy[: shape[0] // 2].size if shape else 0
        for what, part in (("rows of dy are", numbers // width % 2 == 0), ("a part of the batch is", numbers < half)):
            here = to_device(part.reshape(shape))
            one, two = (self.gradients(backward, self.dy * where) for where in (here, ~here))
            yield f"where {what} 0, as padding gives", {key: one[key] + two[key] for key in one}

    def nearby(self, number: int) -> "Loss":
        """The same function at another point, where every tensor is moved by about a hundredth of its spread."""
        rng = self.generator(OTHER_POINTS, number)
        values = {
            key: value + NEARBY * spread_of(value) * rng.standard_normal(value.shape)
            for key, value in self.values.items()
        }
        return Loss(self.forward, self.inputs, self.parameters, values, self.seed, self.dy)


def _copy(array: Any) -> Any:
    """A copy that is read-only if the array is."""
    copied = array.copy()
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        copied.setflags(write=False)
    return copied


def size_of(value: np.ndarray) -> float:
    """The root mean square of a tensor, or 1 if all entries are 0."""
    return float(np.sqrt(np.mean(value * value))) or 1.0 if value.size else 1.0


def spread_of(value: np.ndarray) -> float:
    """The standard deviation of a tensor, which is how far one moves it; its size if all entries are the same."""
    return float(np.std(value)) or size_of(value) if value.size else 1.0


def as_tuple(returned: Any) -> tuple:
    """The gradients that a backward pass returned: an array, a tuple or list of arrays, or None."""
    return () if returned is None else tuple(returned) if isinstance(returned, tuple | list) else (returned,)
