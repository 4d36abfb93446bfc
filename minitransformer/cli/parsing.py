"""Parsing a command line, and reporting bad input in one line."""

import argparse
import math
import re
from typing import Any, NoReturn

from minitransformer.files import check_folder, reason

LONG_WORD = re.compile(r"\S{200,}")  # a path or number of this length is shortened
MAX_INTEGER = 2**63 - 1


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error in one line, without the list of all options."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report unknown options here, with the help of the command itself, instead of in the outer parser."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
        message = re.sub(r"choose from .*\)$", lambda choices: choices[0].replace("'", ""), message)  # before 3.14
        self.exit(2, f"{one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")


def one_line(text: object) -> str:
    """`text` as one printable line, in which very long words are shortened."""
    seen = "".join(c if c.isprintable() else " " if c == "\n" else repr(c)[1:-1] for c in str(text).strip())
    return LONG_WORD.sub(lambda word: f"{word[0][:80]}...{word[0][-20:]}", seen)


def error_message(error: Exception) -> str:
    """The message of an error in one line, without the system's error number."""
    if isinstance(error, MemoryError):
        return one_line(f"not enough memory: {error or 'the requested array is too large'}")
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {reason(error)}" if error.filename else reason(error))
    return one_line(error)


def check_arguments(arguments: argparse.Namespace) -> None:
    """ValueError for numbers that no option accepts, OSError for output folders that cannot be written.

    This is checked before training, so that an error does not cost minutes of work.
    """
    for name, value in vars(arguments).items():
        option = f"--{name.replace('_', '-')}"
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float) and math.isinf(number):
                raise ValueError(f"{option} must be finite, got {number}")
            if isinstance(number, int) and number > MAX_INTEGER:
                raise ValueError(f"{option} must be at most {MAX_INTEGER}, got {number}")
    if getattr(arguments, "seed", 0) < 0:
        raise ValueError(f"--seed must be at least 0, got {arguments.seed}")
    for name in ("runs", "plots"):
        if hasattr(arguments, name):
            check_folder(getattr(arguments, name))
