"""Second derivatives, exact to rounding, from the hand-written backward pass alone.

A backward pass computes g(x), the gradient of L = sum(dy * y). It is itself made of analytic functions, so the complex
step of `derivatives` applies to it as well: g(x + i h v) = g(x) + i h H v - O(h^2), where H is the Hessian of L. One
forward and one backward pass on complex numbers therefore give the product H v, and nothing cancels.

A Hessian is symmetric, u.Hv = v.Hu for all u and v, if its function is twice differentiable (Schwarz). So the test of
symmetry finds a backward pass that is the gradient of no function at all, and needs no derivative of the forward for
that. It cannot find one that is the gradient of another function, such as 2 L; the first-order check does.

At the kink of a ReLU there is no second derivative. Everywhere else the complex step gives the Hessian of the piece
that x is in.
"""

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.check import H, randomize_parameters
from minitransformer.gradcheck.holding import holding
from minitransformer.gradcheck.judge import derivatives
from minitransformer.gradcheck.judge.loss import as_tuple
from minitransformer.gradcheck.judge.promises import restored
from minitransformer.gradcheck.judge.report import CANNOT_TELL, OK, WRONG, finite, row_of
from minitransformer.gradcheck.judge.use import Use, named, placed_errors

TOLERANCE = 1e-11  # of the symmetry
SMALL = 1e-3  # a Hessian is compared with at least this part of the gradient
ROUNDING = 1e-9  # differences of gradients may be off by this part of H v, besides their estimated error
ENOUGH = 1e-10  # differences stop when their error is this part of H v, up to SLACK
FIRST_STEP = 0.01  # of the differences
DIRECTIONS = 105  # stream of random numbers

Arrays = Mapping[str, Any]


def hessian_vector_product(
    forward: Callable[..., tuple],
    backward: Callable[..., Any],
    inputs: Arrays,
    parameters: Mapping[str, Parameter],
    v: Arrays,
    dy: Any = 1.0,
) -> dict[str, Any]:
    """H v, where H is the Hessian of L = sum(dy * y) in all inputs and parameters -> {name: array like the tensor}.

    forward(*inputs) -> (y, cache); backward(dy, cache) -> the gradient of each input, adding to each Parameter.grad.
    `inputs` {name: float64 array} and `parameters` {name: float64 Parameter} are as in `check_gradients`, all on the
    device in use; `v` {name: array} has an array for each of them. dy is an array like y, or a number if y is one.
    The parameters keep their data and their gradients. For the loss of a model, `inputs` is empty and dy is 1.

    Raises TypeError or ComplexWarning where the backward pass cannot compute with complex numbers.
    """
    h = 1j * H
    nudged = {key: x + h * v[key] for key, x in inputs.items()}
    nudged |= {key: parameter.data + h * v[key] for key, parameter in parameters.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a part of H v would be lost
        gradients = _gradients(forward, backward, inputs, parameters, nudged, dy + 0j)
    return {key: gradient.imag / H for key, gradient in gradients.items()}


def _gradients(
    forward: Callable[..., tuple],
    backward: Callable[..., Any],
    inputs: Iterable[str],
    parameters: Mapping[str, Parameter],
    values: Arrays,
    dy: Any,
) -> dict[str, Any]:
    """{name: gradient} by one forward and one backward pass at `values` {name: array}."""
    with contextlib.ExitStack() as stack:
        for key, parameter in parameters.items():
            stack.enter_context(holding(parameter, values[key]))
        _, cache = forward(*[values[key] for key in inputs])
        gradients = dict(zip(inputs, as_tuple(backward(dy, cache)), strict=True))
        return gradients | {key: parameter.grad for key, parameter in parameters.items()}


@dataclasses.dataclass(frozen=True)
class SecondOrderReport:
    """The symmetry of one Hessian along a pair of random directions u and v, and a second witness of H v."""

    name: str
    # the scale of `error` and `witness` is the larger of |Hv| and |Hu|, but at least SMALL |gradient|
    error: float  # |u.Hv - v.Hu|
    size: float  # |Hv| / |gradient|, 0 for a function that is linear in all its inputs together
    witness: float  # |u.Hv - (differences of the gradient)|
    bound: float  # the largest `witness` that passes
    reason: str = ""  # why the check cannot tell

    @property
    def verdict(self) -> str:
        """CANNOT_TELL if there is a reason, WRONG if the Hessian is not symmetric, else OK."""
        if self.reason:
            return CANNOT_TELL
        return OK if self.error <= TOLERANCE else WRONG

    @property
    def passed(self) -> bool:
        """Whether the verdict is OK."""
        return self.verdict == OK

    @property
    def is_measured(self) -> bool:
        """Whether `error` means something."""
        return not self.reason

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name}: cannot tell ({self.reason})"
        if not self.passed:
            return (
                f"{self.name}: WRONG: u.Hv and v.Hu differ by {self.error:.1e}, so this is the gradient of no function"
            )
        return self.row()

    def row(self) -> str:
        """One line of a table."""
        if not self.size:
            return row_of(self.name, "-", "ok, the Hessian is 0")
        witness = f", differences {self.witness:.0e} (bound {self.bound:.0e})" if math.isfinite(self.bound) else ""
        return row_of(self.name, f"{self.error:8.1e}", f"ok{witness}")

    def as_dict(self) -> dict[str, Any]:
        """The report as plain numbers and strings, for JSON."""
        return {**finite(dataclasses.asdict(self)), "passed": self.passed, "verdict": self.verdict}


def check_second_order(
    forward: Callable[..., tuple],
    backward: Callable[..., Any],
    inputs: Mapping[str, np.ndarray],
    parameters: Mapping[str, Parameter] | None = None,
    *,
    name: str = "function",
    seed: int = 0,
    differences: bool = True,
) -> SecondOrderReport:
    """Check that the derivative of `backward` is symmetric, as that of a gradient is -> SecondOrderReport.

    The arguments are those of `check_gradients`. u and v are random directions through all tensors at once. With
    `differences`, u.Hv is also found from differences of real gradients, without complex numbers: where the two do not
    agree, the backward pass is not analytic, and the check cannot tell.
    """
    parameters = parameters or {}
    inputs = {key: to_device(x) for key, x in inputs.items()}
    values = {**inputs, **{key: parameter.data for key, parameter in parameters.items()}}
    rng = np.random.default_rng([seed, DIRECTIONS])
    y, _ = forward(*inputs.values())
    dy = to_device(np.asarray(rng.standard_normal(y.shape)))
    u, v = ({key: to_device(np.asarray(rng.standard_normal(x.shape))) for key, x in values.items()} for _ in range(2))
    try:
        Hv, Hu = (hessian_vector_product(forward, backward, inputs, parameters, way, dy) for way in (v, u))
    except (TypeError, np.exceptions.ComplexWarning) as error:
        return SecondOrderReport(name, math.nan, math.nan, math.nan, math.inf, f"not with complex numbers: {error}")
    size = _norm(_gradients(forward, backward, inputs, parameters, values, dy))
    scale = max(_norm(Hv), _norm(Hu), SMALL * size) or 1.0
    slope = _dot(u, Hv)
    witness, bound, reason = 0.0, math.inf, ""
    if differences:

        def along_u(t):
            moved = {key: x + t * v[key] for key, x in values.items()}
            return _dot(u, _gradients(forward, backward, inputs, parameters, moved, dy))

        expected, uncertain = derivatives.richardson(along_u, 0.0, 1.0, FIRST_STEP, ENOUGH, scale)
        witness, bound = abs(slope - expected) / scale, derivatives.SLACK * uncertain / scale + ROUNDING
        if not witness <= bound:
            reason = "the backward pass is not analytic: the complex step and differences of the gradient do not agree"
    return SecondOrderReport(name, abs(slope - _dot(v, Hu)) / scale, _norm(Hv) / (size or 1.0), witness, bound, reason)


def check_layer_second_order(
    layer: Layer,
    *inputs: np.ndarray,
    context: Iterable[Any] = (),
    dropout_seed: int | None = None,
    randomize: bool = True,
    name: str | None = None,
    **options: Any,
) -> SecondOrderReport:
    """`check_second_order` of a layer; the arguments are those of `check_layer`."""
    use = Use(layer, named(inputs), tuple(context), dropout_seed)
    with placed_errors(), restored(layer):
        if randomize:
            randomize_parameters(layer)
        arguments = use.forward, use.backward, use.inputs, use.parameters
        return check_second_order(*arguments, name=name or type(layer).__name__, **options)


def _dot(a: Arrays, b: Arrays) -> float:
    """The sum of all products."""
    return sum(float(np.vdot(to_host(a[key]), to_host(b[key]))) for key in a)


def _norm(a: Arrays) -> float:
    """The root of the sum of all squares."""
    return math.sqrt(_dot(a, a))
