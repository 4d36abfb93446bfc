"""The cases: bad input as a user might give it.

A case of the command line is a list of arguments, run in a folder with the files of given.py. A case of the library is
a function without arguments, and the exception that it must raise. The messages are not written down here, but in
messages.json. A test compares that file with the messages of today.
"""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """One bad input."""

    where: str  # the command, option or function: the first column of docs/error-messages.md
    wrong: str  # what is wrong with it: the second column
    arguments: tuple = ()  # of the command line, or
    call: Callable | None = None  # a function of the library
    raises: type | None = None  # and the exception that it must raise
    patch: Callable | None = None  # takes a pytest.MonkeyPatch and breaks something in the system first
    late: bool = False  # noticed only after some output was printed

    @property
    def name(self):
        """The name of the test."""
        return f"{self.where}: {self.wrong}"


def command(where, wrong, *arguments, **more):
    """A case of the command line."""
    return Case(where, wrong, tuple(map(str, arguments)), **more)


def library(where, wrong, raises, call):
    """A case of the library."""
    return Case(where, wrong, call=call, raises=raises)


def all_cases():
    """All cases."""
    from tests.refusals import command_line, files, functions, processes

    return [*command_line.CASES, *processes.CASES, *files.CASES, *functions.CASES]
