"""Adam (Kingma and Ba 2015), the optimiser of paper section 5.3."""

from minitransformer.backend import xp


class Adam:
    """A running mean of the gradient, divided by the root of a running mean of its square.

    m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2        both start at 0, so step t divides them by 1 - b^t
    theta <- theta - lr m_hat / (sqrt(v_hat) + eps)        m_hat = m / (1 - b1^t)    v_hat = v / (1 - b2^t)

    The first step has the size lr whatever the gradient, as m_hat = g and sqrt(v_hat) = |g|. `betas` and `eps` are
    the paper's; PyTorch's defaults are (0.9, 0.999) and 1e-8.
    """

    def __init__(self, parameters, betas=(0.9, 0.98), eps=1e-9):
        self.parameters = list(parameters)
        self.betas = betas
        self.eps = eps
        self.t = 0  # steps taken, the same for all parameters
        self.m = [xp.zeros_like(parameter.data) for parameter in self.parameters]
        self.v = [xp.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self, lr):
        """Move every parameter once, by its gradient and the learning rate `lr`."""
        self.t += 1
        beta1, beta2 = self.betas
        for parameter, m, v in zip(self.parameters, self.m, self.v, strict=True):
            g = parameter.grad
            m *= beta1
            m += (1.0 - beta1) * g
            v *= beta2
            v += (1.0 - beta2) * (g * g)
            m_hat = m / (1.0 - beta1**self.t)
            v_hat = v / (1.0 - beta2**self.t)
            parameter.data -= lr * m_hat / (xp.sqrt(v_hat) + self.eps)
