"""If one of several processes fails, all end."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.training.checkpointer import Stopped
from minitransformer.training.diagnostics import NotFiniteError
from minitransformer.training.parallel.communicator import Communicator, ProcessError

GRACE = 0.7  # seconds in which the root may report an error that all processes have; less than signals.REPEAT


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
    One process alone raises its errors as usual.
    """
    try:
        yield
    except BaseException as error:
        if communicator.size == 1:
            raise
        if type(error) in STATUS:
            if communicator.is_root:
                raise
            raise SystemExit(STATUS[type(error)]) from None
        where = ""
        if not communicator.is_root:
            time.sleep(GRACE)  # the root ends this process if it has the same error
            where = f"rank {communicator.rank} of {communicator.size}: "
        communicator.end_all(report(error, where))
