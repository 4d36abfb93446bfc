"""Everything that is tried: what is wrong, and how a user would come to say it.

A case of the command line is its arguments, in a folder with the files of given.py. A case of the library is a function
without arguments, and what it is to raise. What is said is not written down here: it stands in REFUSALS.md, which a
test compares with what is said now.
"""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """One bad input."""

    where: str  # in the page's first column
    wrong: str
    arguments: tuple = ()  # of the command line, or
    call: Callable | None = None  # a function of the library,
    raises: type | None = None  # which is to raise this
    patch: Callable | None = None  # takes a pytest.MonkeyPatch: what is to be broken in the system first
    late: bool = False  # noticed only when something has been said already

    @property
    def name(self):
        """For pytest."""
        return f"{self.where}: {self.wrong}"


def command(where, wrong, *arguments, **more):
    """A case of the command line."""
    return Case(where, wrong, tuple(map(str, arguments)), **more)


def library(where, wrong, raises, call):
    """A case of the library."""
    return Case(where, wrong, call=call, raises=raises)


def all_cases():
    """Every case there is -> list."""
    from tests.refusals import command_line, files, functions

    return [*command_line.CASES, *files.CASES, *functions.CASES]
