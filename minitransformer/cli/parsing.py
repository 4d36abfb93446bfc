"""Reading a command line, and refusing what it cannot be in one line."""

import argparse
import math
import re

from minitransformer.files import check_folder, reason

TOO_LONG = re.compile(r"\S{200,}")  # a path or number of this length says nothing more in full
LARGEST = 2**63 - 1


class Parser(argparse.ArgumentParser):
    """As argparse has it, but a wrong line is refused in one, without the list of all options that there are."""

    def error(self, message):
        """Print the message, and where more is said; exit status 2."""
        message = re.sub(r"choose from .*\)$", lambda choices: choices[0].replace("'", ""), message)  # before 3.14
        self.exit(2, f"{one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")


def one_line(text):
    """`text` without what would break the line or hide in it, and without words of hundreds of letters."""
    seen = "".join(c if c.isprintable() else " " if c == "\n" else repr(c)[1:-1] for c in str(text).strip())
    return TOO_LONG.sub(lambda word: f"{word[0][:80]}...{word[0][-20:]}", seen)


def in_words(error):
    """What an error says, in one line, without Python's own numbers of errors."""
    if isinstance(error, MemoryError):
        return one_line(f"there is not enough memory: {error or 'what was asked for is too large'}")
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {reason(error)}" if error.filename else reason(error))
    return one_line(error)


def check_arguments(arguments):
    """ValueError for numbers that no option can have, OSError for folders that nothing could be written into.

    Here, before the minutes of training, and not after.
    """
    for name, value in vars(arguments).items():
        option = f"--{name.replace('_', '-')}"
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float) and math.isinf(number):
                raise ValueError(f"{option} must be finite, got {number}")
            if isinstance(number, int) and number > LARGEST:
                raise ValueError(f"{option} must be at most {LARGEST}, got {number}")
    if getattr(arguments, "seed", 0) < 0:
        raise ValueError(f"--seed must be 0 or more, got {arguments.seed}")
    for name in ("runs", "plots"):
        if hasattr(arguments, name):
            check_folder(getattr(arguments, name))
