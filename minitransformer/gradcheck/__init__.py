"""Proving a backward pass: compare every gradient with a derivative found without it.

    report = check_layer(MyLayer(), x)
    print(report)                # a line for each tensor, with the worst entry
    assert report.passed

See `derivatives` for how the numbers are found, `check` for what is compared, `cases` for the library's own table.
"""

from minitransformer.gradcheck.check import check_gradients, check_layer
from minitransformer.gradcheck.derivatives import (
    complex_step,
    complex_step_directional,
    richardson,
    richardson_directional,
)
from minitransformer.gradcheck.report import Report, TensorCheck

__all__ = [
    "Report",
    "TensorCheck",
    "check_gradients",
    "check_layer",
    "complex_step",
    "complex_step_directional",
    "richardson",
    "richardson_directional",
]
