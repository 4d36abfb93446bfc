"""What several processes refuse together. Here is the first of them; a stand-in tells it what the others have."""

import sys
import types

from minitransformer.training.parallel.communicator import Communicator
from tests.refusals.cases import command
from tests.refusals.command_line import COPY


class StandIn(Communicator):
    """Rank 0 of `size`; the last one has `others`, and all else is the same."""

    def __init__(self, size, others):
        self.size, self.others = size, others

    def end_all(self, status):
        raise SystemExit(status)

    def collect(self, value):
        last = {**value, **{name: it for name, it in self.others.items() if name in value}} if self.others else value
        return [value] * (self.size - 1) + [last]


def processes(size=2, seen=None, others=None):
    """As in the first of `size` processes that `mpiexec` has started; mpi4py sees `seen` of them."""

    def patch(patch):
        patch.setenv("PMI_RANK", "0")
        patch.setenv("PMI_SIZE", str(size))
        module = types.SimpleNamespace(MPICommunicator=lambda: StandIn(seen or size, others))
        patch.setitem(sys.modules, "minitransformer.training.parallel.mpi", module)

    return patch


def without_mpi4py(patch):
    """`mpiexec` has started two processes, and mpi4py is not installed."""
    processes()(patch)
    patch.delitem(sys.modules, "minitransformer.training.parallel.mpi")
    patch.setitem(sys.modules, "mpi4py", None)


OTHERS = {
    "other options": {"--seed": 4},
    "another task": {"the task": "reverse"},
    "another checkpoint": {"the first step": 9},
    "another text": {"the data": {"text": "other.txt", "sha256": "5d41402a"}},
    "another backend": {"the backend": "cupy"},
    "another version": {"the version of minitransformer": "0.1"},
}
CASES = [
    command("mpiexec", "mpi4py is missing", *COPY, patch=without_mpi4py),
    command("mpiexec", "it belongs to another MPI", *COPY, patch=processes(4, seen=1)),
    command("mpiexec", "a command that processes cannot share", "bench", "tiny", patch=processes()),
    command("mpiexec", "more processes than sequences", *COPY, patch=processes(5)),
    *(command("mpiexec", f"{what} in one process", *COPY, patch=processes(others=OTHERS[what])) for what in OTHERS),
]
