"""Comparing all gradients of a forward and backward pair with derivatives of the forward alone.

The scalar to differentiate is L = sum(dy * y) with a fixed random dy: an all-ones dy would be blind, as the outputs
of a softmax or a LayerNorm always have the same sum. Every input and every parameter is checked.

What counts as the gradient of a parameter is what a second backward pass adds to `Parameter.grad`, so that a pass
which assigns in place of adding, and so forgets all but the last use of a layer, is found out too.

A tensor's error is the largest difference between the two gradients, relative to the tensor's own largest entry. A
tensor whose gradient is 0 up to rounding (a key's bias) has no scale of its own: relative to what is smaller than
a thousandth of the largest gradient of the check, that thousandth is taken.

Everything is compared on the host; a forward and a backward run on the device in use.
"""

import warnings
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.generators import make_generator
from minitransformer.gradcheck import derivatives
from minitransformer.gradcheck.report import COMPLEX_STEP, RICHARDSON, Report, TensorCheck

TOLERANCE = 1e-12  # for the complex step
SLACK = 10.0  # Richardson passes within this many times its own error estimate ...
RICHARDSON_FLOOR = 1e-8  # ... or this relative error, whichever is larger
MAX_ENTRIES = 300  # a tensor with more is checked along random directions
DIRECTIONS = 3
WEIGHTS, UPSTREAM = 101, 102  # streams of random numbers: dy must have nothing to do with weights or inputs


def check_layer(layer, *inputs, context=(), dropout_seed=None, randomize=True, name=None, **options):
    """Check every input and every parameter of `layer` -> Report.

    `inputs` are the float64 arrays that backward returns gradients for, `context` what forward takes besides (masks,
    ids). The layer must be float64. With `dropout_seed` each forward draws from a fresh generator with that seed, so
    all see the same dropout. `randomize` first fills the parameters with order-one random numbers: initial weights
    (gamma = 1, b = 0) hide mistakes. `options` go to `check_gradients`.
    """
    if randomize:
        randomize_parameters(layer)

    context = [to_device(item) if _is_mask(item) else item for item in context]

    def forward(*arrays):
        options = {} if dropout_seed is None else {"rng": make_generator(dropout_seed)}
        return layer.forward(*arrays, *context, **options)

    named_inputs = {f"input {i}" if len(inputs) > 1 else "input": x for i, x in enumerate(inputs)}
    name = name or type(layer).__name__
    parameters = dict(layer.named_parameters())
    return check_gradients(forward, layer.backward, named_inputs, parameters, name=name, **options)


def randomize_parameters(layer, seed=0):
    """Order-one values: gamma around 1, all else around 0, with standard deviation 0.5."""
    rng = np.random.default_rng([seed, WEIGHTS])
    for name, parameter in layer.named_parameters():
        centre = 1.0 if name.rsplit(".", 1)[-1] == "gamma" else 0.0
        parameter.data[...] = to_device(centre + 0.5 * rng.standard_normal(parameter.data.shape))


def _is_mask(item):
    return getattr(item, "dtype", None) == np.dtype(bool)


def check_gradients(
    forward,
    backward,
    inputs,
    parameters=None,
    *,
    name="function",
    seed=0,
    method=None,
    together=False,
    tolerance=TOLERANCE,
    max_entries=MAX_ENTRIES,
    directions=DIRECTIONS,
):
    """Check `backward` against derivatives of `forward` -> Report.

    forward(*inputs) -> (y, cache); backward(dy, cache) -> a gradient for each input (a tuple if several, None if
    none), adding to each Parameter.grad. `inputs` {name: array on the host} and `parameters` {name: Parameter} are
    float64; forward and backward get arrays of the device in use.
    `method`: None takes the complex step if the forward takes complex numbers, else Richardson extrapolation. A
    tensor of up to `max_entries` is checked entry by entry, a larger one along `directions` random directions; with
    `together` one direction runs through all tensors at once, for models of any size.

    Raises TypeError for other dtypes, ValueError if backward returns the wrong number or shapes of gradients.
    """
    subject = _Subject(forward, inputs, parameters or {}, np.random.default_rng([seed, UPSTREAM]))
    got = _backward_gradients(subject, backward)
    method, reason = (method, "as asked") if method else _choose_method(subject)
    groups = {f"all {len(got)} tensors": list(got)} if together else {key: [key] for key in got}
    comparisons = []
    for title, keys in groups.items():
        if together or subject.values[keys[0]].size > max_entries:
            comparisons.append(_compare_along(subject, title, keys, got, method, directions))
        else:
            comparisons.append(_compare_entries(subject, title, got[title], method))
    floor = 1e-3 * max(comparison.scale for comparison in comparisons)
    checks = tuple(_judge(comparison, max(comparison.scale, floor), method, tolerance) for comparison in comparisons)
    return Report(name, checks, reason)


class _Subject:
    """The scalar L as a function of some of its tensors, the others held fixed."""

    def __init__(self, forward, inputs, parameters, rng):
        self.forward, self.inputs, self.parameters, self.rng = forward, inputs, parameters, rng
        self.own = {key: parameter.data for key, parameter in parameters.items()}
        self.values = {**inputs, **{key: to_host(data) for key, data in self.own.items()}}
        for key, value in self.values.items():
            if value.dtype != np.float64:
                raise TypeError(f"gradient checks need float64 throughout, but {key} is {value.dtype}")
        y, _ = self.run()
        self.dy = to_device(np.asarray(rng.standard_normal(y.shape)))

    def run(self):
        """The forward pass as it stands -> (y, cache)."""
        return self.forward(*(to_device(x) for x in self.inputs.values()))

    def loss(self, changed):
        """L with the arrays of `changed` {name: array} put in; complex throughout if one of them is complex.

        All at once, because a complex result cannot be stored in place into a real array.
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

    def along(self, v):
        """t -> L(values + t v) for a direction v {name: array}."""
        return lambda t: self.loss({key: self.values[key] + t * step for key, step in v.items()})

    def random_direction(self, keys):
        """{name: standard normal array} for the tensors `keys`."""
        return {key: self.rng.standard_normal(self.values[key].shape) for key in keys}


class _Comparison(NamedTuple):
    """Two versions of one gradient, entry by entry or along random directions, before they are judged."""

    name: str
    shape: tuple
    directions: int
    got: np.ndarray
    expected: np.ndarray
    own_error: np.ndarray  # what Richardson's method says of its own error; 0 for the complex step
    scale: float  # the size to which errors are relative


def _backward_gradients(subject, backward):
    """{name: gradient} by the backward pass under test, done twice."""
    for parameter in subject.parameters.values():
        parameter.zero_grad()
    for _ in range(2):
        before = {key: np.array(to_host(parameter.grad)) for key, parameter in subject.parameters.items()}
        _, cache = subject.run()
        returned = backward(subject.dy, cache)
    returned = () if returned is None else returned if isinstance(returned, tuple) else (returned,)
    if len(returned) != len(subject.inputs):
        raise ValueError(f"backward returned {len(returned)} gradients for {len(subject.inputs)} inputs")
    gradients = {key: to_host(gradient) for key, gradient in zip(subject.inputs, returned, strict=True)}
    gradients.update({key: to_host(parameter.grad) for key, parameter in subject.parameters.items()})
    for key, gradient in gradients.items():
        if np.shape(gradient) != subject.values[key].shape:
            raise ValueError(f"the gradient of {key} has shape {np.shape(gradient)}, not {subject.values[key].shape}")
    return {key: gradient - before[key] if key in before else gradient for key, gradient in gradients.items()}


def _choose_method(subject):
    """The complex step where it can be trusted, else Richardson -> (method, reason).

    Whether a function is analytic does not depend on the point, so it is tried a little beside ours, lest some entry
    stand so near the kink of a ReLU that a difference would cross it.
    """
    beside, v = (subject.random_direction(subject.values) for _ in range(2))
    point = {key: value + 1e-3 * beside[key] for key, value in subject.values.items()}

    def along(t):
        return subject.loss({key: point[key] + t * v[key] for key in v})

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # the next test finds that out
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


def _compare_entries(subject, key, got, method):
    """Every entry of one tensor."""

    def f(x):
        return subject.loss({key: x})

    value = subject.values[key]
    if method == COMPLEX_STEP:
        expected, own_error = derivatives.complex_step(f, value), np.zeros(value.shape)
    else:
        expected, own_error = derivatives.richardson(f, value)
    scale = float(np.abs(expected).max(initial=0.0))
    return _Comparison(key, value.shape, 0, got, expected, own_error, scale)


def _compare_along(subject, title, keys, gradients, method, directions):
    """The tensors `keys` along random directions: <gradient, v> against the derivative along v."""
    got, pairs = [], []
    for _ in range(directions):
        v = subject.random_direction(keys)
        got.append(sum(float(np.vdot(gradients[key], v[key])) for key in keys))
        if method == COMPLEX_STEP:
            pairs.append((derivatives.complex_step_directional(subject.along(v), 0.0, 1.0), 0.0))
        else:
            pairs.append(derivatives.richardson_directional(subject.along(v), 0.0, 1.0))
    expected, own_error = np.array(pairs).T
    # <gradient, v> is a random number whose standard deviation is the gradient's norm
    norm = float(np.sqrt(sum(np.vdot(gradients[key], gradients[key]) for key in keys)))
    shape = gradients[keys[0]].shape if len(keys) == 1 else (sum(gradients[key].size for key in keys),)
    scale = max(norm, float(np.abs(expected).max()))
    return _Comparison(title, shape, directions, np.array(got), expected, own_error, scale)


def _judge(comparison, scale, method, tolerance):
    """The comparison's worst entry, as a TensorCheck: worst is what exceeds, or comes nearest to, its own tolerance."""
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
