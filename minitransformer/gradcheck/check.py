"""Proving a backward pass, on one page: every gradient against a derivative that is found without it.

The loss is L = sum(dy * y) with a random dy, so that dL/dy = dy, which is what `backward` is given. For the derivative
of L by one number x of an input or a parameter, forward is run once more with x + i h in its place. Taylor's series is

    L(x + i h) = L(x) + i h L'(x) - h^2 L''(x) / 2 - ...        so        L'(x) = Im L(x + i h) / h        up to h^2

Nothing is subtracted, so nothing cancels, and h may be 1e-30: the result is exact to rounding, and the step never
crosses the kink of a ReLU (the complex step, Squire and Trapp 1998). It needs a forward that takes complex numbers and
is analytic: no abs, no complex conjugate.

    errors = gradient_errors(LayerNorm(6, dtype=np.float64), np.random.default_rng(0).standard_normal((2, 3, 6)))
    assert max(errors.values()) < 1e-12

`check_layer` (judge/) does the same for layers of any kind: where the complex step does not apply it measures with
differences, and it says what is wrong with a gradient, and what else a layer promises.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Layer, Parameter

H = 1e-30  # any h whose square is negligible compared with 1
WEIGHTS = 101  # stream of random numbers


def gradient_errors(layer: Layer, *inputs: np.ndarray, seed: int = 0) -> dict[str, float]:
    """{"input 0" and so on, and the name of each parameter: the relative error of its gradient}.

    `inputs` are arrays of float64 on the host, the parameters of `layer` float64; ids have no gradient.
    """
    y, cache = layer.forward(*map(to_device, inputs))
    dy = to_device(np.random.default_rng(seed).standard_normal(y.shape))
    layer.zero_grad()
    returned = layer.backward(dy, cache)
    dx = returned if isinstance(returned, tuple) else (returned,)

    parameters = dict(layer.named_parameters())
    own = {name: parameter.data for name, parameter in parameters.items()}
    for parameter in parameters.values():  # complex all of them, as a layer may add one to another in place
        parameter.data = parameter.data.astype(np.complex128)
    z = [to_device(x.astype(np.complex128) if x.dtype.kind == "f" else x) for x in inputs]

    def loss_of_input(i: int, x: np.ndarray) -> Any:
        return to_host((dy * layer(*z[:i], to_device(x), *z[i + 1 :])).sum())

    def loss_of_parameter(parameter: Parameter, data: np.ndarray) -> Any:
        kept, parameter.data = parameter.data, to_device(data)
        loss = to_host((dy * layer(*z)).sum())
        parameter.data = kept
        return loss

    steps = {f"input {i}": (dx[i], partial(loss_of_input, i), x) for i, x in enumerate(inputs) if x.dtype.kind == "f"}
    for name, parameter in parameters.items():
        steps[name] = (parameter.grad, partial(loss_of_parameter, parameter), to_host(own[name]))
    try:
        return {name: relative_error(gradient, complex_step(f, at)) for name, (gradient, f, at) in steps.items()}
    finally:
        for name, parameter in parameters.items():
            parameter.data = own[name]


def complex_step(f: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """The gradient of the scalar `f` at the real array x, entry by entry -> array like x, exact to rounding.

    `f` takes a complex array of x's shape. It is called once for each entry of x.
    """
    gradient = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        nudged = x.astype(np.complex128)
        nudged[index] += 1j * H
        gradient[index] = f(nudged).imag / H
    return gradient


def relative_error(got: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry of `expected`: one number for a whole tensor.

    If `expected` is all 0, the largest difference itself. Takes arrays on either device, and numbers. 0 for empty
    arrays, NaN if there is a NaN in either. Raises ValueError if the shapes differ.
    """
    got, expected = to_host(got), to_host(expected)
    if got.shape != expected.shape:
        raise ValueError(f"shapes differ: {got.shape} and {expected.shape}")
    difference = np.abs(got - expected).max(initial=0.0)
    return float(difference / (np.abs(expected).max(initial=0.0) or 1.0))


def randomize_parameters(layer: Layer, rng: np.random.Generator | None = None) -> None:
    """Order-one values: gamma around 1, all else around 0, standard deviation 0.5; without `rng` always the same."""
    rng = np.random.default_rng([0, WEIGHTS]) if rng is None else rng
    for name, parameter in layer.named_parameters():
        center = 1.0 if name.rsplit(".", 1)[-1] == "gamma" else 0.0
        parameter.data[...] = to_device(center + 0.5 * rng.standard_normal(parameter.data.shape))
