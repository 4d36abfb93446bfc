"""Counting what real CuPy does silently: waits for the GPU, transfers, and the dtype of each array that comes to be.

with measured() as meter:
    train_step(...)
assert meter.waits == []
"""

import contextlib
import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
OWN_FILES = tuple(
    str(Path(HERE) / name) for name in ("array.py", "indexing.py", "meter.py", "signatures.py", "strict.py")
)


class Meter:
    """Lists of sentences, one for each event, each with the line of code that caused it."""

    def __init__(self):
        self.waits = []  # the host asked for a value, and stood still until the GPU had it
        self.uploads = []  # host to device: no wait, but a trip over the bus
        self.downloads = []  # device to host, by the one declared way, `.get()`
        self.arrays = []  # (dtype, line) of each array made on the device

    def lines_that_made(self, *dtypes):
        """The lines of code that made an array of one of these dtypes."""
        return [line for dtype, line in self.arrays if dtype in dtypes]


_running = []


@contextlib.contextmanager
def measured():
    """Inside a `with` block, everything is counted -> Meter."""
    meter = Meter()
    _running.append(meter)
    try:
        yield meter
    finally:
        _running.remove(meter)


def count(kind, what):
    """Note an event of one `kind`: "waits", "uploads" or "downloads"."""
    for meter in _running:
        getattr(meter, kind).append(f"{what} at {_calling_line()}")


def count_array(dtype):
    """Note that an array of this dtype was made."""
    for meter in _running:
        meter.arrays.append((dtype.name, _calling_line()))


def _calling_line():
    """The innermost line of code outside the stand-in."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in OWN_FILES:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
