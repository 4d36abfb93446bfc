"""What becomes of a command in one of several processes: they join before anything can fail, and end together."""

import argparse
import contextlib
import sys
import traceback
from collections.abc import Iterator
from functools import partial

from minitransformer.cli import UsageError, complain, explain
from minitransformer.system.launcher import Place, wait_for_root


@contextlib.contextmanager
def together(place: Place, arguments: argparse.Namespace) -> Iterator[None]:
    """A `with` block in which the error of one process ends all that a launcher has started; first, all join."""
    describe = partial(report, arguments)
    try:
        from minitransformer.training.parallel.communicator import ProcessError
        from minitransformer.training.parallel.connect import join
        from minitransformer.training.parallel.faults import check_same, ending_together

        communicator = join()
    except BaseException as error:
        place.end_all(describe(error, wait_for_root(*place)))
    with ending_together(communicator, describe):
        try:
            yield
        except SystemExit as end:
            if not end.code and hasattr(arguments, "json"):  # all arguments are parsed: the command has begun
                raise ProcessError("the process ends before its work is done") from end
            if not end.code:
                check_same(communicator, {"the command": "--help or --version"})
            raise


def report(arguments: argparse.Namespace, error: BaseException, where: str) -> int:
    """Print the error that ends all of several processes -> exit status. `where` names the process."""
    with contextlib.redirect_stderr(sys.__stderr__ if where else sys.stderr):  # the first one alone is not silent
        if isinstance(error, UsageError):
            if where:  # else it has been printed
                error.say(where)
            return 2
        if isinstance(error, KeyboardInterrupt):
            complain(arguments, f"{where}stopped")
            return 130
        try:
            if not arguments.debug:
                return explain(error, arguments, where)
        except Exception:
            pass
        traceback.print_exception(error)
        return 1
