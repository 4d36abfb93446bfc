"""Numbers that went wrong: a step whose loss or gradient is not finite is not taken, and what did it is named."""

import contextlib
import math

import numpy as np

from minitransformer.backend import backend_name, to_host, xp
from minitransformer.generators import generator_state, restore_generator
from minitransformer.process import Team
from minitransformer.training.anomaly_hooks import BACKWARD, LOSS, NORM, WEIGHT, Found, Watch

LARGE = 100.0  # weights begin at order 1, and stay there while training goes well
ORDINARY = 1e4  # no activation or gradient below this is near overflowing
LOOK_BACK = 100  # steps of which a GPU keeps loss and norm until somebody looks


class NotFiniteError(ArithmeticError):
    """Training has come to a loss, a gradient or a weight that is nan or infinite, and stops before it does harm.

    `step` is the step, `layer` the name of the first layer concerned ("" if it is none), and `finding` all that was
    found (see watching.py), or None. The text says it all, with the causes that fit; a command adds its `advice`.
    """

    advice = ()  # lines

    def __init__(self, step, headline, finding=None, causes=()):
        self.step, self.finding = step, finding
        self.layer = finding.layer if finding else ""
        super().__init__("\n".join([f"step {step:,}: {headline}", *_lines(finding), *_bullets(causes)]))


def _lines(finding):
    if finding is None:
        return
    yield f"  first not finite     {finding.what}: {finding.bad}"
    if finding.operation:
        yield f"  operation            {finding.operation}"
    for group, (size, what) in finding.largest.items():
        yield f"  {'largest ' + group:<20} {size:.2g}, {what}"


def _bullets(causes):
    for i, cause in enumerate(causes):
        yield f"  {'' if i else 'likely causes':<20} {cause}"


class Guard:
    """Stands between the gradient and Adam: nothing that is not finite gets past it.

    On the CPU the loss and the norm of the gradient are there anyway, and to look at both in each step costs less than
    a thousandth of the tiny model's (18 µs of 26 ms, measured 2026-11-21). On a GPU each look waits. So there they are
    kept, and looked at when training looks at its loss: a step that went wrong in between has ruined the weights, but
    no file.

    What went wrong is found by computing the step again, this time watched (see watching.py). Each replica gets its
    part of the batch and the random state from before the step, so it has the same dropout masks and makes the same
    numbers; but the parts come one after the other, in this thread, as a `Watch` wants it. CuPy's generators cannot be
    put back: there the masks are others, and it may be that nothing is found.

    `detect` watches every step as it is made, and stops at the first array that is not finite, whether or not it would
    have reached the loss. The bits stay the same; a step of the tiny model takes 2.5 times as long.
    """

    def __init__(self, workers, optimizer, detect=False):
        self.workers, self.optimizer, self.detect = workers, optimizer, detect
        self.before = []  # the generators' states
        self.unseen = []  # (step, loss, norm) on a GPU since the last look

    @property
    def step(self):
        """The number of the step that is being made."""
        return self.optimizer.t + 1

    @contextlib.contextmanager
    def computing(self, lr):
        """Around forward and backward: remembers what a repetition needs, and with `detect` watches."""
        self.before = [generator_state(rng) for rng in self.workers.rngs]
        if not self.detect:
            yield
            return
        try:
            with _one_by_one(self.workers), Watch(self.workers.replicas):
                yield
        except Found as found:
            self._forget_gradients()
            raise self._error("a number is not finite", found.finding, lr) from None

    def check(self, compute, loss, norm, lr):
        """Raise NotFiniteError unless both are finite, on a GPU only later, in `look`; compute() does it again."""
        if backend_name() != "numpy":
            self.unseen = [*self.unseen[1 - LOOK_BACK :], (self.step, loss, norm)]
        elif not (math.isfinite(loss) and math.isfinite(norm)):
            raise self._error(_headline(loss, norm), self._find(compute), lr)

    def look(self):
        """On a GPU: raise NotFiniteError for the first of the steps since the last look that went wrong."""
        if not self.unseen:
            return
        steps, losses, norms = zip(*self.unseen, strict=True)
        self.unseen = []
        numbers = to_host(xp.stack([*losses, *norms])).reshape(2, -1)
        for step, loss, norm in zip(steps, *numbers, strict=True):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                late = f"{_headline(loss, norm)}; it was seen after step {steps[-1]:,}, when the weights were lost"
                raise NotFiniteError(step, late, None, [LATE])

    def check_weights(self):
        """Raise NotFiniteError unless all weights are finite: before they are saved, and when training ends."""
        self.look()
        model = self.workers.replicas[0]
        if all(bool(xp.isfinite(parameter.data).all()) for parameter in self.optimizer.parameters):
            return
        finding = None
        try:
            with Watch([model]):
                pass
        except Found as found:
            finding = found.finding
        raise NotFiniteError(self.step - 1, "the weights after it are not finite", finding, [OVERSHOT])

    def _find(self, compute):
        """Do it again, watched -> Finding, or None if all is finite this time."""
        for rng, state in zip(self.workers.rngs, self.before, strict=True):
            restore_generator(rng, state)
        self._forget_gradients()
        try:
            with _one_by_one(self.workers), Watch(self.workers.replicas) as watch:
                loss, norm = compute()
            return watch.not_finite(loss, norm)
        except Found as found:
            return found.finding
        finally:
            self._forget_gradients()

    def _forget_gradients(self):
        """Half a step may have left some in the replicas, to which the next one would add."""
        model, *others = self.workers.replicas
        model.zero_grad()
        for parameter in (parameter for replica in others for parameter in replica.parameters()):
            parameter.take_grad()

    def _error(self, headline, finding, lr):
        config, dtype = self.workers.replicas[0].config, self.optimizer.parameters[0].data.dtype
        causes = [AGAIN] if finding is None else list(likely_causes(finding, self.step, lr, config, dtype))
        return NotFiniteError(self.step, f"{headline}; the weights are left as they were before it", finding, causes)


LATE = "a GPU is not waited for in every step: --detect-anomaly does, and names the layer"
OVERSHOT = "the gradient was finite: the step itself went too far, so the learning rate is too large"
AGAIN = "computed again, all was finite: it needs the dropout masks of that very step, or the sums' order"


def likely_causes(finding, step, lr, config, dtype):
    """What may have done it, a sentence each: only what fits the finding."""
    sizes = {group: size for group, (size, _) in finding.largest.items()}
    operation = finding.operation
    trouble = operation.trouble if operation else ""
    causes = []
    if finding.phase == WEIGHT:
        causes.append(OVERSHOT if step > 1 else "the weights that training was given")
    far = 10.0 * lr * step  # Adam moves a weight by about lr in a step; ten, as lr may have been larger before
    if lr > 1.0 or sizes.get("weights", 0.0) > LARGE < far:
        causes.append(f"the learning rate, {lr:.1e} in this step: too large, or the warm-up too short")
    elif sizes.get("weights", 0.0) > LARGE:
        causes.append(f"weights of this size: they should begin at order 1, and {lr:.1e} has not moved them so far")
    if trouble == "overflow" or finding.phase == NORM or max(sizes.values(), default=0.0) > _root_of_largest(dtype):
        limit = float(np.finfo(dtype).max)
        causes.append(f"an overflow: {dtype} ends at {limit:.1e}, so squares at {_root_of_largest(dtype):.1e}")
    if trouble == "divide by zero" and "log" in operation.text:
        smooth = ", and label smoothing asks for that of every token" if config.label_smoothing else ""
        causes.append(f"a logarithm of 0{smooth}: take log p as z - log(sum(exp(z)))")
    if "Norm" in finding.kind and config.norm_eps == 0.0:
        causes.append("norm_eps = 0: a token whose features are all equal has the variance 0")
    if "Attention" in finding.kind and trouble == "invalid value":
        causes.append("a mask: where a query may look at nothing, a softmax over -inf alone is nan")
    if not causes and finding.phase != LOSS and max(sizes.values(), default=0.0) < ORDINARY:
        method = "backward" if finding.phase == BACKWARD else "forward"
        causes.append(
            f"a mistake in {method} of {finding.kind}: all numbers before it are of ordinary size (gradcheck)"
        )
    return causes or ["none of the usual ones fits"]


def _root_of_largest(dtype):
    return math.sqrt(float(np.finfo(dtype).max))


def _headline(loss, norm):
    if math.isfinite(loss):
        return f"the norm of the gradient is {float(norm)}"
    return f"the loss is {float(loss)}"


@contextlib.contextmanager
def _one_by_one(workers):
    """Inside a `with` block the members of the team work one after the other, in the caller's thread."""
    before, workers.team = workers.team, OneByOne(workers.team.size)
    try:
        yield
    finally:
        workers.team = before


class OneByOne(Team):
    """A team whose members work one after the other, on the same shares of the work."""

    def __init__(self, size):
        super().__init__(1)
        self.size = size
