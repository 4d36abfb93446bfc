"""Bugs of functions that are right for numbers of ordinary size, and finite and wrong for very large or small ones."""

from minitransformer import functional as F
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional import gated
from minitransformer.functional.layer_norm import _are_usual, _layer_norm, _with_care
from minitransformer.functional.reductions import row_inverse_rms
from minitransformer.functional.softmax import _empty_rows

EXHIBITS = (
    Exhibit(
        "the rounding error of a large mean stays in x_hat",
        "At a mean of 1e6, float32 knows the mean to 0.03: not exact enough for a token with the spread 1.",
        _layer_norm,
        "is_usual = _are_usual(mean, rstd)",
        "is_usual = bool((rstd > 0).all())",
    ),
    Exhibit(
        "equal features that are large are not quite equal after the mean is subtracted",
        "1e30 less its mean is 1e22 if the mean is off in its last digit, and 1e22 divided by its own size is 1.",
        _with_care,
        "x_hat -= far * x_hat[..., :1]",
        "pass",
    ),
    Exhibit(
        "squares overflow and the norm of a large token is 0",
        "Finite and wrong: NaN would be seen. The largest float32 is 3e38, so squares overflow from 1.8e19 on.",
        _layer_norm,
        "is_usual = _are_usual(mean, rstd)",
        "is_usual = bool((abs(mean * rstd) < 10.0).all())",
    ),
    Exhibit(
        "a single token is not asked whether its squares have overflowed",
        "A short cut for decoding must ask what the long way asks.",
        _are_usual,
        "rstd.item() != 0.0 and ",
        "",
    ),
    Exhibit(
        "many tokens are not asked whether their squares have overflowed",
        "And the long way what the short cut asks.",
        _are_usual,
        "rstd.all() and ",
        "",
    ),
    Exhibit(
        "a mean far below 0 is not far from it",
        "Of a distance with a sign, the largest is not the farthest.",
        _are_usual,
        "abs(mean * rstd).max()",
        "(mean * rstd).max()",
    ),
    Exhibit(
        "one large token makes all other tokens too small to be squared",
        "To bring the largest entry to 1 is right by row, and wrong for the array.",
        row_inverse_rms,
        "xp.abs(x).max(axis=-1, keepdims=True)",
        "xp.abs(x).max()",
    ),
    Exhibit(
        "a token is scaled before it is squared, and its eps is not",
        "Which of the two is larger then decides. Only where eps makes a difference does one see it.",
        row_inverse_rms,
        "eps * scale * scale",
        "eps",
    ),
    Exhibit(
        "squares overflow, and RMSNorm makes nothing of a large token",
        "Finite and wrong: NaN would be seen.",
        F.rms_norm,
        "is_usual = rrms.all()",
        "pass",
    ),
    Exhibit(
        "the derivative of GELU's tanh form multiplies infinity by zero",
        "Far out one factor is 0, and the other must not be infinite.",
        F.gelu_tanh_backward,
        "xp.minimum(dx, limit, out=dx)",
        "pass",
    ),
    Exhibit(
        "a closed gate multiplies by infinity",
        "Where the activation's slope is 0, so is the gradient - unless dy times up has overflowed before.",
        gated._gated_backward,
        "activation_backward(dy, cache_activation)\n    dgate *= up",
        "activation_backward(dy * up, cache_activation)\n    pass",
    ),
    Exhibit(
        "scores that have overflowed to -inf count as forbidden",
        "The weights of such a query are all 0: finite, and wrong. A row is empty only if its mask says so.",
        _empty_rows,
        "return lowest & ~xp.broadcast_to(allowed, shape).any(axis=-1, keepdims=True)",
        "return lowest",
    ),
)
