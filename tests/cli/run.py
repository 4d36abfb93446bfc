"""Calling the command line in this process."""

from typing import NamedTuple

from minitransformer.cli import main


class Outcome(NamedTuple):
    """What a user sees of one command."""

    status: int
    out: str
    err: str


def run(capsys, *arguments):
    """`minitransformer *arguments` -> Outcome."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_by_argparse:
        status = exit_by_argparse.code
    return Outcome(status, *capsys.readouterr())


def assert_refused(outcome, *parts):
    """Bad input: status 2 and one line on stderr that has all `parts`, nothing of a traceback, nothing on stdout."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("minitransformer ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    for part in parts:
        assert part in outcome.err
