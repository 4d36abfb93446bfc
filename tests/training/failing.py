"""`minitransformer` in a process of `mpiexec`, where something goes wrong in one rank.

mpiexec -n 2 python -m tests.training.failing WHAT RANK train copy --steps 20 ...
"""

import errno
import os
import sys
from pathlib import Path

import numpy as np

from minitransformer.cli import main
from minitransformer.layers import OutputProjection
from minitransformer.training.parallel.processes import ProcessParallel

STEP = 5  # in which it goes wrong


def fail_in_step(error):
    """Computing the own part of a batch raises `error`."""
    compute, steps = ProcessParallel.map_own_part, []

    def map_own_part(self, *arguments):
        steps.append(None)
        if len(steps) == STEP:
            raise error
        return compute(self, *arguments)

    ProcessParallel.map_own_part = map_own_part


def spoil_gradient():
    """From this step on, a layer returns a gradient of nan."""
    backward, steps = OutputProjection.backward, []

    def spoilt(self, dy, cache):
        steps.append(None)
        dx = backward(self, dy, cache)
        return np.full_like(dx, np.nan) if len(steps) >= STEP else dx

    OutputProjection.backward = spoilt


def fill_disk():
    """Saving a checkpoint fails."""
    write = Path.write_bytes

    def write_bytes(path, data):
        if len(data) > 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    Path.write_bytes = write_bytes


FAILURES = {
    "memory": lambda: fail_in_step(MemoryError("Unable to allocate 1.00 GiB")),
    "bug": lambda: fail_in_step(ZeroDivisionError("division by zero")),
    "interrupt": lambda: fail_in_step(KeyboardInterrupt()),
    "nan": spoil_gradient,
    "disk": fill_disk,
    "nothing": lambda: None,
}

if __name__ == "__main__":
    what, rank, *arguments = sys.argv[1:]
    if rank == os.environ.get("PMI_RANK", "0"):
        FAILURES[what]()
    sys.exit(main(arguments))
