"""If one of several processes fails, all end."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.system.launcher import wait_for_root
from minitransformer.training.finite import NotFiniteError
from minitransformer.training.parallel.communicator import Communicator, ProcessError
from minitransformer.training.saving.checkpointer import Stopped


class Disagreement(ProcessError):
    """The processes have other options, data or versions. All of them raise it."""


# errors that all processes raise at the same point; one process alone may raise a subclass of them
STATUS: dict[type[BaseException], int] = {
    Stopped: 130,
    NotFiniteError: 1,
    Disagreement: 2,
}


def check_same(communicator: Communicator, facts: dict[str, Any]) -> None:
    """Raises Disagreement, in all processes, unless all have the same facts {what: value}."""
    everyones = communicator.collect(facts)
    for rank, others in enumerate(everyones):
        for name, value in others.items():
            if value != everyones[0].get(name):
                raise Disagreement(f"{name} is {value} in rank {rank}, and {everyones[0].get(name)} in rank 0")


@contextlib.contextmanager
def ending_together(communicator: Communicator, report: Callable[[BaseException, str], int]) -> Iterator[None]:
    """A `with` block in which the error of one process ends all, so that none waits for it forever.

    Errors that all processes have are reported by the root alone, which raises them. Any other is reported by the
    process that has it: report(error, where) prints it and returns the exit status; `where` is "" or names the rank.
    One process alone raises its errors as usual, and all raise SystemExit without a status, as after --help.
    """
    try:
        yield
    except BaseException as error:
        if communicator.size == 1 or (isinstance(error, SystemExit) and not error.code):
            raise
        if type(error) in STATUS:
            if communicator.is_root:
                raise
            raise SystemExit(STATUS[type(error)]) from None
        communicator.end_all(report(error, wait_for_root(communicator.rank, communicator.size)))
