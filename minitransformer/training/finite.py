"""Refusing a step whose loss or gradient is nan or infinite: it would carry this number into every weight."""

from collections.abc import Iterable
from typing import Any

from minitransformer.backend import xp

SILENT: dict[str, Any] = {"over": "ignore", "divide": "ignore", "invalid": "ignore"}  # for np.errstate


class NotFiniteError(ArithmeticError):
    """The loss, the gradient or a weight is nan or infinite, so training stops.

    `step` is the step, 0 if nobody counts, `layer` the name of the first layer concerned ("" if there is none), and
    `anomaly` all details if somebody looked for the cause (see watching/), or None. A recipe adds `advice` on how to
    continue.
    """

    advice: Iterable[str] = ()  # lines

    def __init__(self, step: int, message: str, anomaly: Any = None) -> None:
        super().__init__()
        self.step = step
        self.explain(f"step {step:,}: {message}" if step else message, anomaly)

    def explain(self, message: str, anomaly: Any) -> None:
        """Set the message and what was found."""
        self.args, self.anomaly, self.layer = (message,), anomaly, anomaly.layer if anomaly else ""


def is_finite(loss: Any, norm: Any) -> bool:
    """Whether the step may be taken. On a GPU this waits for it."""
    return bool(xp.isfinite(loss) & xp.isfinite(norm))


def headline(loss: Any, norm: Any) -> str:
    """Which of the two is not finite, as half a sentence."""
    return f"the norm of the gradient is {norm}" if xp.isfinite(loss) else f"the loss is {loss}"


def check_finite(loss: Any, norm: Any, model: Any = None) -> None:
    """Raise NotFiniteError unless the step's loss and norm are finite; it names the gradients of `model` that are not.

    A step calls this before the optimizer, so no weight has moved.
    """
    if is_finite(loss, norm):
        return
    named = model.named_parameters() if model else ()
    bad = [name for name, parameter in named if not xp.isfinite(parameter.grad).all()]
    where = f"; not finite: the gradient of {', '.join(bad[:3])}" if bad else ""
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    raise NotFiniteError(0, f"{headline(loss, norm)}{where}{more}; the weights are as they were before this step")
