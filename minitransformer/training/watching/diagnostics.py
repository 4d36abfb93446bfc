"""Diagnostics: a step whose loss or gradient is not finite is not taken, and the error names the likely cause."""

import contextlib
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from minitransformer.backend import backend_name, to_host, xp
from minitransformer.system.generators import generator_state, restore_generator
from minitransformer.system.process import ThreadTeam
from minitransformer.training.clipping import grad_norm
from minitransformer.training.finite import NotFiniteError, headline, is_finite
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.threads import DataParallel
from minitransformer.training.step import Gradients, Measured
from minitransformer.training.watching.anomaly_hooks import (
    BACKWARD,
    LOSS,
    NORM,
    WEIGHT,
    Anomaly,
    AnomalyFound,
    AnomalyHooks,
)

LARGE = 100.0  # weights begin at order 1, and stay there while training goes well
ORDINARY = 1e4  # no activation or gradient below this is near overflowing
LOOK_BACK = 100  # steps whose loss and norm are kept on a GPU until they are checked


class Diagnostics:
    """`gradients`, watched: a step whose loss or gradient is not finite is refused, and the error names the cause.

    On the CPU this costs less than a thousandth of the tiny model's step (18 µs of 26 ms, measured 2026-11-21). On a
    GPU every check waits for the device. So the numbers are kept there, and checked when training measures an accuracy
    or saves: a step that went wrong in between has ruined the weights, but no file.

    To find the cause, repeat(batch) computes the step again with anomaly hooks on all layers. Each replica of the
    `workers` gets its part of the batch and the random state from before the step, so it draws the same dropout masks
    and computes the same numbers. The hooks need a single thread, so the parts are computed one after another. CuPy's
    generators cannot be restored: there the masks differ, and the search may find nothing.

    With `detect_anomaly` the hooks are active in every step, and training stops at the first array that is not finite,
    even if that array would not have reached the loss. The results are bit-identical; a step of the tiny model takes
    2.5 times as long. agree_on(error) is called before an error is raised that all processes have.
    """

    def __init__(
        self,
        gradients: Gradients,
        workers: DataParallel,
        optimizer: Adam,
        detect_anomaly: bool = False,
        repeat: Gradients | None = None,
        agree_on: Callable[[NotFiniteError], None] | None = None,
    ) -> None:
        self.gradients, self.workers, self.optimizer = gradients, workers, optimizer
        self.detect_anomaly, self.repeat, self.agree_on = detect_anomaly, repeat or gradients, agree_on
        self.before: list[Any] = []  # the generators' states before the step
        self.batch: Any = None  # of the step that is being computed
        self.pending: list[tuple] = []  # (step, loss, norm) on a GPU since the last `check_pending`
        self.step = 0  # the step that is being computed

    def __call__(self, batch: Any, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`. Records what repeating the step needs, and adds the hooks if asked."""
        self.step, self.batch = self.step + 1, batch
        self.before = [generator_state(rng) for rng in self.workers.rngs]
        if not self.detect_anomaly:
            return self.gradients(batch, weight, measure)
        try:
            with _one_by_one(self.workers), AnomalyHooks(self.workers.replicas):
                return self.gradients(batch, weight, measure)
        except AnomalyFound as found:
            self._forget_gradients()
            anomaly = found.anomaly
        self._refuse("a number is not finite", anomaly)

    def check(self, loss: Any, norm: Any) -> None:
        """Raise NotFiniteError unless the step's loss and norm are finite; on a GPU, `check_pending` does."""
        if backend_name() != "numpy":
            self.pending = [*self.pending[1 - LOOK_BACK :], (self.step, loss, norm)]
        elif not is_finite(loss, norm):
            self._refuse(headline(loss, norm), self._find())

    def check_pending(self) -> None:
        """Check the steps since the last call, on a GPU. Raises NotFiniteError for the first that is not finite."""
        if not self.pending:
            return
        steps, losses, norms = zip(*self.pending, strict=True)
        self.pending = []
        numbers = to_host(xp.stack([*losses, *norms])).reshape(2, -1)
        for step, loss, norm in zip(steps, *numbers, strict=True):
            if not is_finite(loss, norm):
                late = f"{headline(loss, norm)}; it was noticed after step {steps[-1]:,}, when the weights were lost"
                raise NotFiniteError(step, explained(late, None, [LATE]))

    def check_weights(self) -> None:
        """Raise NotFiniteError unless all weights are finite. Called before saving and when training ends."""
        self.check_pending()
        model = self.workers.replicas[0]
        if all(bool(xp.isfinite(parameter.data).all()) for parameter in model.parameters()):
            return
        anomaly = None
        try:
            with AnomalyHooks([model]):
                pass
        except AnomalyFound as found:
            anomaly = found.anomaly
        message = explained("the weights after it are not finite", anomaly, [OVERSHOT])
        raise NotFiniteError(self.step, message, anomaly)

    def _find(self) -> Anomaly | None:
        """Compute the step again with anomaly hooks -> Anomaly, or None if everything is finite this time."""
        for rng, state in zip(self.workers.rngs, self.before, strict=True):
            restore_generator(rng, state)
        self._forget_gradients()
        try:
            with _one_by_one(self.workers), AnomalyHooks(self.workers.replicas) as hooks:
                loss = self.repeat(self.batch).loss
                return hooks.not_finite(loss, grad_norm(self.optimizer.parameters))
        except AnomalyFound as found:
            return found.anomaly
        finally:
            self._forget_gradients()

    def _forget_gradients(self) -> None:
        """Clear all gradients. A step that was not completed may have left some in the replicas."""
        model, *others = self.workers.replicas
        model.zero_grad()
        for parameter in (parameter for replica in others for parameter in replica.parameters()):
            parameter.zero_grad()

    def _refuse(self, headline: str, anomaly: Anomaly | None) -> NoReturn:
        model, loss_fn = self.workers.replicas[0], self.workers.loss_fn
        causes = [AGAIN] if anomaly is None else likely_causes(anomaly, self.step, self.optimizer.lr, model, loss_fn)
        headline = f"{headline}; the weights are as they were before this step"
        error = NotFiniteError(self.step, explained(headline, anomaly, causes), anomaly)
        if self.agree_on:
            self.agree_on(error)
        raise error


LATE = "training does not wait for a GPU in every step: --detect-anomaly does, and names the layer"
OVERSHOT = "the gradient was finite: the step itself went too far, so the learning rate is too large"
AGAIN = "computed again, all was finite: it depends on that step's dropout masks, or on the order of sums"


def explained(headline: str, anomaly: Anomaly | None, causes: list[str]) -> str:
    """The message of an error: what happened, what was found, one thing a line, and what has likely caused it."""
    return "\n".join([headline, *_lines(anomaly), *_bullets(causes)])


def _lines(anomaly):
    if anomaly is None:
        return
    yield f"  first not finite     {anomaly.what}: {anomaly.bad}"
    if anomaly.operation:
        yield f"  operation            {anomaly.operation}"
    for group, (size, what) in anomaly.largest.items():
        yield f"  {'largest ' + group:<20} {size:.2g}, {what}"


def _bullets(causes):
    for i, cause in enumerate(causes):
        yield f"  {'' if i else 'likely causes':<20} {cause}"


def likely_causes(anomaly: Anomaly, step: int, lr: float, model: Any, loss_fn: Any) -> list[str]:
    """The likely causes that fit the anomaly, one sentence each."""
    sizes = {group: size for group, (size, _) in anomaly.largest.items()}
    operation, dtype = anomaly.operation, model.parameters()[0].data.dtype
    error = operation.error if operation else ""
    causes = []
    if anomaly.phase == WEIGHT:
        causes.append(OVERSHOT if step > 1 else "the weights that training was given")
    far = 10.0 * lr * step  # Adam moves a weight by about lr in a step; ten, as lr may have been larger before
    if lr > 1.0 or sizes.get("weights", 0.0) > LARGE < far:
        causes.append(f"the learning rate, {lr:.1e} in this step: too large, or the warm-up too short")
    elif sizes.get("weights", 0.0) > LARGE:
        causes.append(
            f"the initial weights: they should be of order 1, and a rate of {lr:.1e} cannot have made them so large"
        )
    if error == "overflow" or anomaly.phase == NORM or max(sizes.values(), default=0.0) > _root_of_largest(dtype):
        limit = float(np.finfo(dtype).max)
        causes.append(
            f"an overflow: the largest {dtype} is {limit:.1e}, so squares overflow above {_root_of_largest(dtype):.1e}"
        )
    if operation and error == "divide by zero" and "log" in operation.text:
        smoothing = getattr(loss_fn, "label_smoothing", 0.0)
        smooth = ", and label smoothing needs that of every token" if smoothing else ""
        causes.append(f"a logarithm of 0{smooth}: compute log p as z - log(sum(exp(z)))")
    if "Attention" in anomaly.kind and error == "invalid value":
        causes.append("a mask: where a query may attend to nothing, a softmax over -inf alone is nan")
    if not causes and anomaly.phase != LOSS and max(sizes.values(), default=0.0) < ORDINARY:
        method = "backward" if anomaly.phase == BACKWARD else "forward"
        causes.append(f"a mistake in {method} of {anomaly.kind}: all numbers before it are of ordinary size")
    return causes or ["none of the usual causes fits"]


def _root_of_largest(dtype):
    return math.sqrt(float(np.finfo(dtype).max))


@contextlib.contextmanager
def _one_by_one(workers):
    """Inside a `with` block the parts of a batch are computed one after another, in the caller's thread."""
    before, workers.team = workers.team, OneByOne(workers.team.size)
    try:
        yield
    finally:
        workers.team = before


class OneByOne(ThreadTeam):
    """A team that computes the same parts of the work one after another."""

    def __init__(self, size: int) -> None:
        super().__init__(1)
        self.size = size
