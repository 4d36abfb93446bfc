"""Paper section 5.3: Adam (Kingma and Ba 2015), and the learning rate over time. AdamW's weight decay is an option."""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import backend_name, fused, to_device, to_host, xp
from minitransformer.checks import check_number, check_rate, check_shape
from minitransformer.core import Parameter
from minitransformer.training.flat import ONE_THREAD, FlatParameter

INCOMPLETE = (
    "the last step was interrupted while it moved the weights, so they belong to no step: load a saved model, and the "
    "state of its optimizer or a new optimizer"
)
BLOCK = 2**17  # numbers per block on the host: they stay in the cache, and threads seldom want Python's lock


class Adam:
    """A running mean of the gradient, divided by the root of a running mean of its square (see `adam_update`).

    The first step has size lr for any gradient, as m_hat = g and sqrt(v_hat) = |g|. `betas` and `eps` are the paper's;
    PyTorch's defaults are (0.9, 0.999) and 1e-8. `lr` may be set before each step.

    weight_decay > 0 is AdamW (Loshchilov and Hutter 2019; not in the paper): before each step every matrix is
    multiplied by 1 - lr weight_decay, whatever its gradient. Vectors (biases, gamma and beta) do not decay.

    The parameters become views into one long vector (`weights`), so that a step is a few calls on one array. Those that
    are frozen are left out, and there is no state for them. Raises ValueError for betas outside [0, 1), for a negative
    weight_decay, and if every parameter is frozen.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
        weight_decay: float = 0.0,
    ) -> None:
        for beta in betas:
            check_rate("betas", beta)
        if not check_number("weight_decay", weight_decay) >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {weight_decay}")
        trained = [parameter for parameter in parameters if not parameter.frozen]
        if not trained:
            raise ValueError("every parameter is frozen, so there is nothing to train")
        self.flat = FlatParameter(trained)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.team: Any = ONE_THREAD  # or a ThreadTeam, whose threads share a step
        self.t = 0  # steps taken
        self.moving = False  # whether a step has begun to move weights, and has not ended
        self.m, self.v = (xp.zeros_like(self.weights[self.shard]) for _ in range(2))

    @property
    def weights(self) -> xp.ndarray:
        """All weights in one vector (N,)."""
        return self.flat.data

    @property
    def parameters(self) -> list[Parameter]:
        """The one long parameter, as a list."""
        return [self.flat]

    @property
    def shard(self) -> slice:
        """The part of `weights` that a step moves, and whose m and v are held: all, except in a `ShardedAdam`."""
        return slice(0, self.weights.size)

    def zero_grad(self) -> None:
        """Set every gradient to zero, before backward adds to it."""
        self.flat.zero_grad()

    def step(self, *, scale: Any = 1.0) -> None:
        """Move every weight once, by its gradient times `scale` and the learning rate.

        `scale` is for the result of `clip_factor`: scaling here saves a pass over all gradients. A step that an
        exception has ended halfway cannot be undone: then the next one raises RuntimeError.
        """
        if self.moving:
            raise RuntimeError(INCOMPLETE)
        self.moving = True
        if self.weight_decay:
            self._decay()
        data, grad, t = self.weights[self.shard], self.flat.grad[self.shard], self.t + 1
        adam_update(data, grad, self.m, self.v, self.lr, self.betas, self.eps, t, scale=scale, team=self.team)
        self.t += 1
        self.moving = False

    def _decay(self) -> None:
        """Shrink the matrices, or those parts of them that are in the shard."""
        shard, start = self.shard, 0
        for parameter in self.flat.pieces:
            end = start + parameter.data.size
            if parameter.data.ndim > 1:
                self.weights[max(start, shard.start) : min(end, shard.stop)] *= 1.0 - self.lr * self.weight_decay
            start = end

    def state(self) -> tuple[dict, dict]:
        """Arrays {name: array} on the host, and facts that JSON can hold, to save."""
        return {"adam.m": to_host(self.m), "adam.v": to_host(self.v)}, {"adam_steps": self.t}

    def load_state(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Continue from what `state` returned. Raises ValueError for arrays of another shape."""
        for name, array in (("adam.m", self.m), ("adam.v", self.v)):
            check_shape(name, arrays[name], self.weights.shape)
            array[...] = to_device(arrays[name][self.shard])
        self.t = facts["adam_steps"] if "adam_steps" in facts else facts["step"]  # the latter before version 0.2
        self.moving = False


def adam_update(
    data: xp.ndarray,
    grad: xp.ndarray,
    m: xp.ndarray,
    v: xp.ndarray,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    t: int,
    *,
    scale: Any = 1.0,
    team: Any = ONE_THREAD,
) -> None:
    """Step t of Adam (Kingma and Ba 2015, algorithm 1) for one parameter: data, m and v are changed in place.

    data, grad, m and v have one shape; t counts from 1. The gradient is g = scale grad, where scale is a number or a
    0-d array. Raises ValueError for other shapes, and for arrays that cannot be changed in place as one flat vector.

    m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2        both start at 0, so step t divides them by 1 - b^t
    theta <- theta - lr m_hat / (sqrt(v_hat) + eps)        m_hat = m / (1 - b1^t)    v_hat = v / (1 - b2^t)

    With a = 1 - b1^t and b = 1 - b2^t: lr m_hat / (sqrt(v_hat) + eps) = lr sqrt(b) / a m / (sqrt(v) + sqrt(b) eps).
    """
    for name, array in (("grad", grad), ("m", m), ("v", v)):
        check_shape(name, array, data.shape)
    if hasattr(scale, "shape"):
        check_shape("scale", scale, ())
    for name, array in (("data", data), ("m", m), ("v", v)):
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} must be contiguous to be changed in place")
    beta1, beta2 = betas
    whole = [array.reshape(-1) for array in (data, grad, m, v)]
    size = BLOCK if backend_name() == "numpy" else max(data.size, 1)  # a GPU takes all numbers at once
    blocks = [slice(start, start + size) for start in range(0, data.size, size)]
    parts = ([array[block] for block in blocks] for array in whole)
    update = partial(_adam_update, lr=lr, beta1=beta1, beta2=beta2, eps=eps, t=t, scale=scale)
    team.map(update, *parts)


@fused
def _adam_update(data, grad, m, v, lr, beta1, beta2, eps, t, scale):
    root = math.sqrt(1.0 - beta2**t)
    work = grad * ((1.0 - beta1) * scale)
    m *= beta1
    m += work
    xp.multiply(grad, grad, out=work)
    work *= (1.0 - beta2) * scale * scale
    v *= beta2
    v += work
    xp.sqrt(v, out=work)
    work += root * eps
    xp.divide(m, work, out=work)
    work *= lr * root / (1.0 - beta1**t)
    data -= work


def noam(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """factor d_model^-0.5 min(step^-0.5, step warmup^-1.5): a straight rise for `warmup` steps, then 1/sqrt(step).

    Paper section 5.3, equation 3; `factor` is only in the authors' code. The peak, at step = warmup, is factor /
    sqrt(d_model warmup): 6.99e-4 for the base model. ValueError for a step or warmup below 1: at 0 it has no value.
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}")
    if warmup < 1:
        raise ValueError(f"warmup must be at least 1, got {warmup}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
