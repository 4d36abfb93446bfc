"""`minitransformer` in a process of `mpiexec`, where something goes wrong in one rank.

mpiexec -n 2 python -m tests.training.failing WHAT RANK train copy --steps 20 ...

Each process writes its number to the file pid-RANK. Models are tested on few sequences, and figures are empty files.
"""

import errno
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from minitransformer.cli import main, train
from minitransformer.layers import OutputProjection
from minitransformer.recipes import toy
from minitransformer.training.parallel.processes import ProcessParallel

STEP = 5  # in which it goes wrong


def fail_in_step(error):
    """Computing the own part of a batch raises `error`, or this process stops."""
    compute, steps = ProcessParallel.own_part, []

    def own_part(self, *arguments):
        steps.append(None)
        if len(steps) == STEP and error is None:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif len(steps) == STEP:
            raise error
        return compute(self, *arguments)

    ProcessParallel.own_part = own_part


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


def ask_for_cupy():
    """The backend is one that is not installed."""
    sys.modules["cupy"] = None
    sys.argv.extend(["--backend", "cupy"])


FAILURES = {
    "nothing": lambda: None,
    "backend": ask_for_cupy,
    "unknown option": lambda: sys.argv.append("--fly"),
    "runs in a file": lambda: sys.argv.extend(["--runs", f"pid-{sys.argv[2]}"]),
    "help": lambda: sys.argv.append("--help"),
    "end before the others are joined": lambda: os._exit(3),
    "late": lambda: time.sleep(3),
    "never there": lambda: time.sleep(60),
    "memory": lambda: fail_in_step(MemoryError("Unable to allocate 1.00 GiB")),
    "exit": lambda: fail_in_step(SystemExit(0)),
    "stop": lambda: fail_in_step(None),
    "bug": lambda: fail_in_step(ZeroDivisionError("a mistake in the library")),
    "interrupt": lambda: fail_in_step(KeyboardInterrupt()),
    "nan": spoil_gradient,
    "disk": fill_disk,
    "other steps": lambda: sys.argv.extend(["--steps", "7"]),
    "other task": lambda: sys.argv.__setitem__(4, "reverse"),
    "other version": lambda: setattr(train, "__version__", "0.0"),
}

if __name__ == "__main__":
    what, rank = sys.argv[1:3]
    own = os.environ.get("PMI_RANK", "0")
    Path(f"new-{own}").write_text(str(os.getpid()))
    Path(f"new-{own}").rename(f"pid-{own}")  # never seen half written
    toy.TESTED = 20
    Figure.savefig = lambda self, path, **options: Path(path).write_bytes(b"")
    if rank == own:
        FAILURES[what]()
    sys.exit(main(sys.argv[3:]))
