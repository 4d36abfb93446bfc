"""Adam (Kingma and Ba 2015), the optimiser of paper section 5.3."""

import math
from functools import partial

from minitransformer.backend import fused_on_gpu, xp
from minitransformer.checks import check_rate
from minitransformer.process import ALONE

BLOCK = 2**16  # numbers updated at a time


class Adam:
    """A running mean of the gradient, divided by the root of a running mean of its square.

    m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2        both start at 0, so step t divides them by 1 - b^t
    theta <- theta - lr m_hat / (sqrt(v_hat) + eps)        m_hat = m / (1 - b1^t)    v_hat = v / (1 - b2^t)

    The first step has the size lr whatever the gradient, as m_hat = g and sqrt(v_hat) = |g|. `betas` and `eps` are
    the paper's; PyTorch's defaults are (0.9, 0.999) and 1e-8. The threads of `team` share the work.
    """

    def __init__(self, parameters, betas=(0.9, 0.98), eps=1e-9, team=ALONE):
        for beta in betas:
            check_rate("betas", beta)
        self.parameters = list(parameters)
        self.betas = betas
        self.eps = eps
        self.team = team
        self.t = 0  # steps taken, the same for all parameters
        self.m = [xp.zeros_like(parameter.data) for parameter in self.parameters]
        self.v = [xp.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self, lr, scale=1.0):
        """Move every parameter once, by its gradient times `scale` and the learning rate `lr`.

        `scale` takes the factor of `clip_factor`: scaling on the way saves a walk through all gradients.
        """
        self.t += 1
        for parameter, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.adam_update(parameter.data, parameter.grad, m, v, lr, scale)

    @fused_on_gpu
    def adam_update(self, data, g, m, v, lr, scale):
        """Move one parameter: what is worked on together should stay in the processor's cache from first to last."""
        whole = [array.reshape(-1) for array in (data, g, m, v)]
        blocks = [slice(start, start + BLOCK) for start in range(0, data.size, BLOCK)]
        parts = ([array[block] for block in blocks] for array in whole)
        self.team.map(partial(self._update, lr=lr, scale=scale), *parts)

    def _update(self, data, g, m, v, lr, scale):
        """The formulas above, in place.

        With a = 1 - b1^t and b = 1 - b2^t: lr m_hat / (sqrt(v_hat) + eps) = lr sqrt(b) / a m / (sqrt(v) + sqrt(b) eps).
        """
        beta1, beta2 = self.betas
        root = math.sqrt(1.0 - beta2**self.t)
        work = g * ((1.0 - beta1) * scale)
        m *= beta1
        m += work
        xp.multiply(g, g, out=work)
        work *= (1.0 - beta2) * scale * scale
        v *= beta2
        v += work
        xp.sqrt(v, out=work)
        work += root * self.eps
        xp.divide(m, work, out=work)
        work *= lr * root / (1.0 - beta1**self.t)
        data -= work
