"""What the terminal can show: its width and its characters."""

import contextlib
import errno
import json
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDEST = 100  # columns: longer lines of prose are hard to read
NARROWEST = 24  # columns for an explanation beside its example; with fewer, it goes below
EXAMPLE = re.compile(r"^( +\S.*?  +)(\S.*)$")  # an indented command, and after two spaces what it does
LONG_WORD = re.compile(r"\S{200,}")  # a path or number of this length is shortened
BEYOND_ADDRESSES = ("array is too big", "Maximum allowed dimension exceeded")  # NumPy's ValueErrors


def width() -> int:
    """The columns to print in: those of the terminal, at most WIDEST, or 80 if the output is not a terminal."""
    return min(shutil.get_terminal_size().columns, WIDEST)


def wrap(text: str, first: str = "", rest: str = "") -> str:
    """`text` in lines that fit the terminal; the first one begins with `first`, the others with `rest`."""
    return _wrap(text, width(), first, rest)


def _wrap(text: str, columns: int, first: str, rest: str) -> str:
    return textwrap.fill(
        text,
        max(columns, len(rest) + NARROWEST),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,  # such as paths
        break_on_hyphens=False,  # such as --options
    )


def wrap_help(text: str, columns: int) -> str:
    """A help text in lines of at most `columns`: paragraphs, and indented examples with their explanations."""
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        if block.startswith(" "):
            blocks.append("\n".join(_wrap_example(line, columns) for line in block.splitlines()))
        else:
            blocks.append(_wrap(" ".join(block.split()), columns, "", ""))
    return "\n\n".join(blocks)


def _wrap_example(line: str, columns: int) -> str:
    parts = EXAMPLE.match(line)
    if not parts or len(line) <= columns:
        return line
    example, explanation = parts.groups()
    if columns - len(example) >= NARROWEST:
        return _wrap(explanation, columns, example, " " * len(example))
    return example.rstrip() + "\n" + _wrap(explanation, columns, " " * 6, " " * 6)


def table_row(name: str, rest: str, column: int) -> str:
    """A row of a table: the `rest` in a `column` beside its `name`, or below it if both are too long for a line."""
    row = f"{name:<{column}} {rest}"
    return row if len(row) <= width() else f"{name}\n{rest:>{width()}}"


def json_line(answer: Any) -> str:
    """The answer of a command as one line of JSON; numbers of it that are not finite become null."""
    if isinstance(answer, dict):
        answer = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in answer.items()}
    return json.dumps(answer)


def one_line(text: object) -> str:
    """`text` as one printable line, in which very long words are shortened."""
    seen = "".join(c if c.isprintable() else " " if c == "\n" else repr(c)[1:-1] for c in str(text).strip())
    return LONG_WORD.sub(lambda word: f"{word[0][:80]}...{word[0][-20:]}", seen)


def error_message(error: BaseException) -> str:
    """The message of an error in one line, without the system's error number."""
    if isinstance(error, MemoryError):
        return one_line(f"not enough memory: {error}" if str(error) else "not enough memory")
    if isinstance(error, ValueError) and str(error).startswith(BEYOND_ADDRESSES):
        return "not enough memory: an array would be larger than any memory"
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return one_line(error)


@contextlib.contextmanager
def blamed_for_memory(what: str) -> Iterator[None]:
    """A `with` block in which arrays that are too large for the memory are the fault of `what`, an option's value."""
    try:
        yield
    except (MemoryError, ValueError) as error:
        if isinstance(error, ValueError) and not str(error).startswith(BEYOND_ADDRESSES):
            raise
        raise MemoryError(f"{what} is too large") from error


def print_in_any_encoding() -> None:
    """Let `print` write "?" for what the output's encoding lacks, instead of failing, and write each line at once.

    So a pipe or a log file shows how far a command is.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # neither None nor a stand-in
            stream.reconfigure(errors="replace", line_buffering=True)


def is_closed_pipe(error: BaseException) -> bool:
    """Whether the reader of our output has gone. Windows then says that an argument is invalid, and names no file."""
    if sys.platform == "win32" and isinstance(error, OSError) and error.errno == errno.EINVAL and not error.filename:
        return True
    return isinstance(error, BrokenPipeError)


def shown(path: Path) -> Path:
    """`path` as short as it can be typed: relative to the current directory if it is below that."""
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return absolute.relative_to(here) if absolute.is_relative_to(here) else path


def quoted(path: object) -> str:
    """`path` as a word of a command that a reader copies: for a POSIX shell, or on Windows for cmd and PowerShell."""
    if sys.platform == "win32":
        return f'"{path}"' if " " in str(path) else str(path)
    return shlex.quote(str(path))


def discard_output() -> None:
    """Let everything that is still printed vanish: nobody reads it, because the pipe is closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
