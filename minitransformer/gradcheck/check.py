"""Comparing all gradients of a forward and backward pair with derivatives of the forward alone.

The scalar to differentiate is L = sum(dy * y) with a fixed random dy: an all-ones dy would find nothing, because the
outputs of a softmax or a LayerNorm always have the same sum. Every input and every parameter is checked.

The gradient of a parameter is what a second backward pass adds to `Parameter.grad`. This also finds a backward pass
that assigns instead of adding, and so forgets all uses of a layer except the last.

A tensor's error is the largest difference between the two gradients, relative to the tensor's own largest entry. A
tensor whose gradient is 0 up to rounding (a key's bias) has no scale of its own. So the scale is at least a thousandth
of the largest gradient of the check.

Everything is compared on the host; a forward and a backward run on the device in use.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Layer, Parameter
from minitransformer.generators import make_generator
from minitransformer.gradcheck import derivatives
from minitransformer.gradcheck.report import COMPLEX_STEP, RICHARDSON, Report, TensorCheck

TOLERANCE = 1e-12  # for the complex step
SLACK = 10.0  # Richardson passes within this many times its own error estimate ...
RICHARDSON_FLOOR = 1e-8  # ... or this relative error, whichever is larger
MAX_ENTRIES = 300  # a tensor with more is checked along random directions
DIRECTIONS = 3
WEIGHTS, UPSTREAM = 101, 102  # streams of random numbers: dy must have nothing to do with weights or inputs


def check_layer(
    layer: Layer,
    *inputs: np.ndarray,
    context: Iterable[Any] = (),
    dropout_seed: int | None = None,
    randomize: bool = True,
    name: str | None = None,
    **options: Any,
) -> Report:
    """Check every input and every parameter of `layer` -> Report.

    `inputs` are the float64 arrays that backward returns gradients for, `context` are forward's other
    arguments (masks, ids). The layer must be float64. With `dropout_seed` each forward draws from a fresh generator
    with that seed, so all draw the same dropout. `randomize` first fills the parameters with order-one random numbers,
    because initial weights (gamma = 1, b = 0) hide mistakes. `options` go to `check_gradients`.
    """
    if randomize:
        randomize_parameters(layer)

    context = masks_to_device(context)

    def forward(*arrays):
        options = {} if dropout_seed is None else {"rng": make_generator(dropout_seed)}
        return layer.forward(*arrays, *context, **options)

    named_inputs = {f"input {i}" if len(inputs) > 1 else "input": x for i, x in enumerate(inputs)}
    name = name or type(layer).__name__
    parameters = dict(layer.named_parameters())
    return check_gradients(forward, layer.backward, named_inputs, parameters, name=name, **options)


def randomize_parameters(layer: Layer, rng: np.random.Generator | None = None) -> None:
    """Order-one values: gamma around 1, all else around 0, with standard deviation 0.5.

    Without `rng` they are the same in every call.
    """
    rng = np.random.default_rng([0, WEIGHTS]) if rng is None else rng
    for name, parameter in layer.named_parameters():
        centre = 1.0 if name.rsplit(".", 1)[-1] == "gamma" else 0.0
        parameter.data[...] = to_device(centre + 0.5 * rng.standard_normal(parameter.data.shape))


def masks_to_device(items: Iterable[Any]) -> list:
    """The items, with boolean arrays on the device in use."""
    return [to_device(item) if getattr(item, "dtype", None) == np.dtype(bool) else item for item in items]


def as_tuple(returned: Any) -> tuple:
    """The gradients that a backward pass returned: an array, a tuple of arrays, or None."""
    return () if returned is None else returned if isinstance(returned, tuple) else (returned,)


def check_gradients(
    forward: Callable[..., tuple],
    backward: Callable[..., Any],
    inputs: Mapping[str, np.ndarray],
    parameters: Mapping[str, Parameter] | None = None,
    *,
    name: str = "function",
    seed: int = 0,
    method: str | None = None,
    together: bool = False,
    tolerance: float = TOLERANCE,
    max_entries: int = MAX_ENTRIES,
    directions: int = DIRECTIONS,
) -> Report:
    """Check `backward` against derivatives of `forward` -> Report.

    forward(*inputs) -> (y, cache); backward(dy, cache) -> a gradient for each input (a tuple if several, None if
    none), adding to each Parameter.grad. `inputs` {name: array on the host} and `parameters` {name: Parameter} are
    float64; forward and backward get arrays of the device in use.
    `method`: None chooses the complex step if the forward accepts complex numbers, else Richardson extrapolation. A
    tensor of up to `max_entries` is checked entry by entry, a larger one along `directions` random directions. With
    `together`, each direction runs through all tensors at once, for models of any size.

    Raises TypeError for other dtypes, ValueError if backward returns the wrong number or shapes of gradients.
    """
    loss = _Loss(forward, inputs, parameters or {}, np.random.default_rng([seed, UPSTREAM]))
    got = _backward_gradients(loss, backward)
    method, reason = (method, "as asked") if method else _choose_method(loss)
    groups = {f"all {len(got)} tensors": list(got)} if together else {key: [key] for key in got}
    comparisons = []
    for title, keys in groups.items():
        if together or loss.values[keys[0]].size > max_entries:
            comparisons.append(_compare_along(loss, title, keys, got, method, directions))
        else:
            comparisons.append(_compare_entries(loss, title, got[title], method))
    floor = 1e-3 * max(comparison.scale for comparison in comparisons)
    checks = tuple(_judge(comparison, max(comparison.scale, floor), method, tolerance) for comparison in comparisons)
    return Report(name, checks, reason)


class _Loss:
    """The scalar L as a function of some of its tensors, the others held fixed."""

    def __init__(
        self,
        forward: Callable[..., tuple],
        inputs: Mapping[str, np.ndarray],
        parameters: Mapping[str, Parameter],
        rng: np.random.Generator,
    ) -> None:
        self.forward, self.inputs, self.parameters, self.rng = forward, inputs, parameters, rng
        self.own = {key: parameter.data for key, parameter in parameters.items()}
        self.values = {**inputs, **{key: to_host(data) for key, data in self.own.items()}}
        for key, value in self.values.items():
            if value.dtype != np.float64:
                raise TypeError(f"gradient checks need float64 throughout, but {key} is {value.dtype}")
        y, _ = self.run()
        self.dy = to_device(np.asarray(rng.standard_normal(y.shape)))

    def run(self) -> tuple:
        """The forward pass at the tensors' own values -> (y, cache)."""
        return self.forward(*(to_device(x) for x in self.inputs.values()))

    def __call__(self, changed: Mapping[str, np.ndarray]) -> Any:
        """L with the arrays of `changed` {name: array} instead of its own; all are complex if one of them is.

        A complex result cannot be stored in place into a real array.
        """
        dtype = np.result_type(*changed.values())
        values = {
            key: to_device(changed.get(key, value).astype(dtype, copy=False)) for key, value in self.values.items()
        }
        try:
            for key, parameter in self.parameters.items():
                parameter.data = values[key]
            y, _ = self.forward(*(values[key] for key in self.inputs))
        finally:
            for key, parameter in self.parameters.items():
                parameter.data = self.own[key]
        return to_host((self.dy * y).sum())[()]

    def along(self, v: Mapping[str, np.ndarray]) -> Callable[[Any], Any]:
        """t -> L(values + t v) for a direction v {name: array}."""
        return lambda t: self({key: self.values[key] + t * step for key, step in v.items()})

    def random_direction(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """{name: standard normal array} for the tensors `keys`."""
        return {key: self.rng.standard_normal(self.values[key].shape) for key in keys}


class _Comparison(NamedTuple):
    """One gradient by backward and by derivatives, entry by entry or along random directions, not yet judged."""

    name: str
    shape: tuple
    directions: int
    got: np.ndarray
    expected: np.ndarray
    own_error: np.ndarray  # Richardson's estimate of its own error; 0 for the complex step
    scale: float  # the size to which errors are relative


def _backward_gradients(loss: _Loss, backward: Callable[..., Any]) -> dict[str, np.ndarray]:
    """{name: gradient} by the backward pass under test, done twice."""
    for parameter in loss.parameters.values():
        parameter.zero_grad()
    for _ in range(2):
        before = {key: np.array(to_host(parameter.grad)) for key, parameter in loss.parameters.items()}
        _, cache = loss.run()
        returned = backward(loss.dy, cache)
    returned = as_tuple(returned)
    if len(returned) != len(loss.inputs):
        raise ValueError(f"backward returned {len(returned)} gradients for {len(loss.inputs)} inputs")
    gradients = {key: to_host(gradient) for key, gradient in zip(loss.inputs, returned, strict=True)}
    gradients.update({key: to_host(parameter.grad) for key, parameter in loss.parameters.items()})
    for key, gradient in gradients.items():
        if np.shape(gradient) != loss.values[key].shape:
            raise ValueError(f"the gradient of {key} has shape {np.shape(gradient)}, not {loss.values[key].shape}")
    return {key: gradient - before[key] if key in before else gradient for key, gradient in gradients.items()}


def _choose_method(loss: _Loss) -> tuple[str, str]:
    """The complex step where it can be trusted, else Richardson -> (method, reason).

    Whether a function is analytic does not depend on the point. It is tried at a point near ours, in case an entry is
    so close to the kink of a ReLU that a difference would cross it.
    """
    beside, v = (loss.random_direction(loss.values) for _ in range(2))
    point = {key: value + 1e-3 * beside[key] for key, value in loss.values.items()}

    def along(t):
        return loss({key: point[key] + t * v[key] for key in v})

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # the next check notices this
            y = along(1j * derivatives.H)
    except (TypeError, ValueError, AssertionError) as error:
        return RICHARDSON, f"the forward does not take complex numbers: {error}"
    if not np.iscomplexobj(y):
        return RICHARDSON, "the forward drops the imaginary part"
    by_complex_step = float(y.imag / derivatives.H)
    by_differences = float(along(1e-6) - along(-1e-6)) / 2e-6
    # abs() or conj() inside gives errors as large as the derivative, rounding only small ones
    if not abs(by_complex_step - by_differences) <= 0.01 * max(abs(by_complex_step), abs(by_differences)):
        return RICHARDSON, "the forward is not analytic: the complex step and differences disagree"
    return COMPLEX_STEP, "the forward is analytic"


def _compare_entries(loss: _Loss, key: str, got: np.ndarray, method: str) -> _Comparison:
    """Every entry of one tensor."""

    def f(x):
        return loss({key: x})

    value = loss.values[key]
    if method == COMPLEX_STEP:
        expected, own_error = derivatives.complex_step(f, value), np.zeros(value.shape)
    else:
        expected, own_error = derivatives.richardson(f, value)
    scale = float(np.abs(expected).max(initial=0.0))
    return _Comparison(key, value.shape, 0, got, expected, own_error, scale)


def _compare_along(
    loss: _Loss, title: str, keys: list[str], gradients: dict[str, np.ndarray], method: str, directions: int
) -> _Comparison:
    """The tensors `keys` along random directions: <gradient, v> against the derivative along v."""
    got, pairs = [], []
    for _ in range(directions):
        v = loss.random_direction(keys)
        got.append(sum(float(np.vdot(gradients[key], v[key])) for key in keys))
        if method == COMPLEX_STEP:
            pairs.append((derivatives.complex_step_directional(loss.along(v), 0.0, 1.0), 0.0))
        else:
            pairs.append(derivatives.richardson_directional(loss.along(v), 0.0, 1.0))
    expected, own_error = np.array(pairs).T
    # <gradient, v> is a random number whose standard deviation is the gradient's norm
    norm = float(np.sqrt(sum(np.vdot(gradients[key], gradients[key]) for key in keys)))
    shape = gradients[keys[0]].shape if len(keys) == 1 else (sum(gradients[key].size for key in keys),)
    scale = max(norm, float(np.abs(expected).max()))
    return _Comparison(title, shape, directions, np.array(got), expected, own_error, scale)


def _judge(comparison: _Comparison, scale: float, method: str, tolerance: float) -> TensorCheck:
    """The comparison's worst entry, as a TensorCheck: the one with the largest error relative to its own tolerance."""
    scale = scale or 1.0  # all gradients are 0, and so must all differences be
    error = np.abs(comparison.got - comparison.expected) / scale
    allowed = np.full(error.shape, tolerance)
    if method == RICHARDSON:
        allowed = np.maximum(SLACK * comparison.own_error / scale, RICHARDSON_FLOOR)
    excess = error / allowed
    flat = int(np.where(np.isnan(excess), np.inf, excess).argmax())
    index = tuple(int(i) for i in np.unravel_index(flat, error.shape))
    return TensorCheck(
        name=comparison.name,
        shape=comparison.shape,
        method=method,
        directions=comparison.directions,
        error=float(error[index]),
        tolerance=float(allowed[index]),
        index=index,
        got=float(comparison.got[index]),
        expected=float(comparison.expected[index]),
    )
