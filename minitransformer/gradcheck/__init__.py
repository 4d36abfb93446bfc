"""Proving a backward pass: compare every gradient with a derivative found without it.

    report = check_layer(MyLayer(), x)
    print(report)                # a line for each tensor, with the worst entry
    assert report.passed         # or look at report.verdict: "ok", "WRONG" or "cannot tell"

`check_second_order` goes one step further: the derivative of the backward pass must be symmetric, as a Hessian is.

check.py is the whole idea on one page. judge/ is for layers that somebody else wrote: `derivatives` measures where the
complex step does not apply, `gradients` says what is compared, `examine` which number is trusted where, `promises` what
else a layer must keep, `explain` what is wrong with a gradient. `subjects` is the library's own table.
"""

from minitransformer.gradcheck.check import complex_step, gradient_errors, relative_error
from minitransformer.gradcheck.judge.derivatives import richardson
from minitransformer.gradcheck.judge.gradients import check_gradients
from minitransformer.gradcheck.judge.layer import check_layer
from minitransformer.gradcheck.judge.report import Report, TensorCheck
from minitransformer.gradcheck.judge.second_order import (
    SecondOrderReport,
    check_layer_second_order,
    check_second_order,
    hessian_vector_product,
)
from minitransformer.gradcheck.judge.use import LayerError

__all__ = [
    "LayerError",
    "Report",
    "SecondOrderReport",
    "TensorCheck",
    "check_gradients",
    "check_layer",
    "check_layer_second_order",
    "check_second_order",
    "complex_step",
    "gradient_errors",
    "hessian_vector_product",
    "relative_error",
    "richardson",
]
