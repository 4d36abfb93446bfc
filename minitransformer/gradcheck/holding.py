"""A parameter with other numbers for a while: what would the layer compute with those?"""

import contextlib
from collections.abc import Iterator

from minitransformer.backend import xp
from minitransformer.core import Parameter


@contextlib.contextmanager
def holding(parameter: Parameter, data: xp.ndarray) -> Iterator[None]:
    """Inside a `with` block the parameter has other `data`, and a gradient like it that is zero at first."""
    own = parameter.data, parameter.grad
    parameter.data, parameter.grad = data, xp.zeros_like(data)
    try:
        yield
    finally:
        parameter.data, parameter.grad = own
