"""Bugs of the models after the paper: RMSNorm, GELU and SiLU, gates, and the choice among them."""

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional import gated
from minitransformer.functional.erf import normal_cdf, normal_pdf
from minitransformer.layers import normalization, stack

RMS_NORM = (
    Exhibit(
        "RMSNorm's gamma is taken outside the sum",
        "Exact at gamma = 1, where every model starts, as with LayerNorm.",
        F.rms_norm_backward,
        """dx = dy * gamma  # dx_hat
    dx -= x_hat * (row_dot(dx, x_hat) / C)""",
        "dx = gamma * (dy - x_hat * (row_dot(dy, x_hat) / C))",
    ),
    Exhibit(
        "RMSNorm's backward forgets the path through the root",
        "A scaling of the token changes nothing, so dx must be orthogonal to x. Is it?",
        F.rms_norm_backward,
        "dx -= x_hat * (row_dot(dx, x_hat) / C)",
        "pass",
    ),
    Exhibit(
        "RMSNorm divides by the norm instead of the root mean square",
        "Then the output has size 1 instead of sqrt(C), and gamma must learn the difference.",
        F.rms_norm,
        "row_dot(x, x) / x.shape[-1] + eps",
        "row_dot(x, x) + eps",
    ),
    Exhibit(
        "RMSNorm adds eps outside the root",
        "Hardly to be seen at eps = 1e-5: check with an eps that is not small.",
        F.rms_norm,
        "1.0 / xp.sqrt(row_dot(x, x) / x.shape[-1] + eps)",
        "1.0 / (xp.sqrt(row_dot(x, x) / x.shape[-1]) + eps)",
    ),
    Exhibit(
        "RMSNorm's backward takes the mean away as LayerNorm's does",
        "Forward has no mean, so there is no path through one.",
        F.rms_norm_backward,
        "dx *= rrms",
        "dx -= dx.mean(axis=-1, keepdims=True)\n    dx *= rrms",
    ),
    Exhibit(
        "RMSNorm's gamma learns from the first sequence alone if there are four axes",
        "Leading axes mean nothing. Are the gradients of four axes those of the same tokens in two?",
        F.rms_norm_backward,
        "dgamma = column_dot(dy.reshape(-1, C), x_hat.reshape(-1, C))",
        "first = 0 if dy.ndim > 3 else ...\n"
        "    dgamma = column_dot(dy[first].reshape(-1, C), x_hat[first].reshape(-1, C))",
    ),
)

ACTIVATIONS = (
    Exhibit(
        "GELU's derivative is the share alone",
        "The product rule has two terms: Phi(x), and x phi(x) for what x does to its own share.",
        F.gelu_backward,
        "dx *= x\n",
        "dx *= 0.0\n",
    ),
    Exhibit(
        "GELU's derivative has the bell curve without x",
        "The slope at 0 would be 0.9 instead of one half.",
        F.gelu_backward,
        "dx *= x\n",
        "pass\n",
    ),
    Exhibit(
        "the bell curve is that of exp(-x^2)",
        "erf has exp(-t^2) under its integral, but at t = x / sqrt(2).",
        normal_pdf,
        "p *= -0.5",
        "p *= -1.0",
    ),
    Exhibit(
        "GELU takes the error function of x itself",
        "A normal distribution of half the variance: right at 0, at both ends, and at no other place.",
        normal_cdf,
        "math.sqrt(0.5)",
        "1.0",
    ),
    Exhibit(
        "the error function is the tanh of its first two terms",
        "GELU's tanh form in its place: never more than 0.0005 away, so that training looks the same.",
        F.erf,
        """quotient = _polynomial(above, u)
        quotient /= _polynomial(below, u)""",
        "quotient = 2.0 / math.sqrt(math.pi) * scale * (1.0 + 2.0 * 0.044715 * scale**2 * u)",
    ),
    Exhibit(
        "the error function of float64 is computed with the digits of float32",
        "1e-8 is enough to train, and 1e8 times too much to prove.",
        F.erf,
        "SINGLE if x.dtype.itemsize == 4 else DOUBLE",
        "SINGLE",
    ),
    Exhibit(
        "the derivative of GELU's tanh form forgets the cube",
        "What tanh is taken of has the slope 1 + 3 * 0.044715 x^2 (times a constant), not 1.",
        F.gelu_tanh_backward,
        "dx *= 2.0 * LINEAR * CUBIC * 3.0",
        "dx *= 0.0",
    ),
    Exhibit(
        "the derivative of GELU's tanh form has the cube without its factor 3",
        "(x^3)' = 3 x^2. Up to |x| = 1 one hardly sees the difference.",
        F.gelu_tanh_backward,
        "dx *= 2.0 * LINEAR * CUBIC * 3.0",
        "dx *= 2.0 * LINEAR * CUBIC",
    ),
    Exhibit(
        "SiLU's derivative is the sigmoid alone",
        "The product rule has two terms here, too.",
        F.silu_backward,
        "dx *= x",
        "dx *= 0.0",
    ),
    Exhibit(
        "SiLU's exponential overflows",
        "1 / (1 + exp(-x)) is right for every x, but exp(-x) is not finite for x = -800.",
        F.silu,
        """share = xp.minimum(x, 0)
    rest = share - x  # -p
    xp.exp(share, out=share)
    xp.exp(rest, out=rest)
    rest += share
    share /= rest""",
        "share = 1.0 / (1.0 + xp.exp(-x))",
    ),
)

GATES = (
    Exhibit(
        "gate and up are swapped, forward",
        "A model can learn either, and each trained elsewhere fails in the other.",
        gated._gated,
        "gate, up =",
        "up, gate =",
    ),
    Exhibit(
        "gate and up are swapped, backward",
        "The right gradients in each other's place: the shapes agree.",
        gated._gated_backward,
        "[dgate, dy * a]",
        "[dy * a, dgate]",
    ),
    Exhibit(
        "the gradient of up passes through the activation",
        "up is let through by the gate, and goes through nothing itself.",
        gated._gated_backward,
        "[dgate, dy * a]",
        "[dgate, activation_backward(dy * a, cache_activation)]",
    ),
    Exhibit(
        "the gate's gradient forgets what it lets up",
        "dy must be multiplied by up before it meets the activation's slope.",
        gated._gated_backward,
        "dgate *= up",
        "pass",
    ),
    Exhibit(
        "swiglu has the gate of GELU",
        "The two curves are alike, the models of the two are not.",
        F.swiglu,
        "_gated(x, silu)",
        "_gated(x, gelu)",
        also=((F.swiglu_backward, "silu_backward)", "gelu_backward)"),),
    ),
)

CHOICES = (
    Exhibit(
        "a normalisation always has its default eps",
        "T5 and LLaMA have 1e-6: of a small token their norm makes something else.",
        normalization.make_norm,
        "(d_model, eps=eps, dtype=dtype)",
        "(d_model, dtype=dtype)",
    ),
    Exhibit(
        "the last normalisation of a stack is always a LayerNorm",
        "The one that is built in another place is the one that is forgotten.",
        stack.LayerStack.__init__,
        "make_norm(config.normalization,",
        'make_norm("layer",',
    ),
    Exhibit(
        "feed-forward networks keep their biases",
        "T5 and LLaMA have none: their weights would not load.",
        L.FeedForward.__init__,
        "blocks=blocks, bias=bias",
        "blocks=blocks, bias=True",
    ),
    Exhibit(
        "stacks have ReLU whatever the config says",
        "A switch that nobody passes on looks the same from outside.",
        stack.make_feed_forward,
        "config.activation",
        '"relu"',
    ),
)

EXHIBITS = RMS_NORM + ACTIVATIONS + GATES + CHOICES
