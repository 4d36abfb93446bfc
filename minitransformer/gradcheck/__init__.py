"""Proving a backward pass: compare every gradient with a derivative found without it.

    report = check_layer(MyLayer(), x)
    print(report)                # a line for each tensor, with the worst entry
    assert report.passed         # or look at report.verdict: "ok", "WRONG" or "cannot tell"

`check_second_order` goes one step further: the derivative of the backward pass must be symmetric, as a Hessian is.

See `derivatives` for how the numbers are found, `check` for what is compared, `examine` for which number is trusted
where, `promises` for what else a layer must keep, `explain` for what is said about a wrong gradient, and `subjects` for
the library's own table. `relative_error` is the measure that the whole project uses.
"""

from minitransformer.gradcheck.check import check_gradients
from minitransformer.gradcheck.comparison import relative_error
from minitransformer.gradcheck.derivatives import complex_step, richardson
from minitransformer.gradcheck.layer import check_layer
from minitransformer.gradcheck.report import Report, TensorCheck
from minitransformer.gradcheck.second_order import (
    SecondOrderReport,
    check_layer_second_order,
    check_second_order,
    hessian_vector_product,
)
from minitransformer.gradcheck.use import LayerError

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
    "hessian_vector_product",
    "relative_error",
    "richardson",
]
