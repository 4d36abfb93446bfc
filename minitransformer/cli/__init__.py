"""The command line: `minitransformer COMMAND ...`, one file per command."""

import argparse
import itertools
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from minitransformer import __version__
from minitransformer.backend import BackendUnavailableError, use_backend
from minitransformer.cli import (
    bench,
    check,
    devices,
    generate,
    gradcheck,
    hint,
    init,
    lengths,
    lesson,
    progress,
    solution,
    start,
    summary,
    train,
)
from minitransformer.files import check_folder, reason
from minitransformer.training import NotFiniteError, Stopped

COMMANDS = {
    "lesson": lesson,
    "init": init,
    "start": start,
    "check": check,
    "hint": hint,
    "progress": progress,
    "solution": solution,
    "train": train,
    "generate": generate,
    "summary": summary,
    "gradcheck": gradcheck,
    "bench": bench,
    "lengths": lengths,
    "devices": devices,
}

# errors that bad input or the system causes; they get one line and exit status 2
INPUT_ERRORS = (
    ValueError,
    TypeError,
    IndexError,
    OSError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    BackendUnavailableError,
)
LONG_WORD = re.compile(r"\S{200,}")  # a path or number of this length is shortened
MAX_INTEGER = 2**63 - 1
DESCRIPTION = """\
"Attention Is All You Need" by hand: every layer forward and backward, in NumPy, without autograd.

  minitransformer lesson                 list the lessons, in reading order
  minitransformer init course            copy the lessons and exercises to a folder of your own
  minitransformer start 06               start the exercises of lesson 06
  minitransformer check 06               check your solutions, and name your mistakes
  minitransformer hint 06                show the next hint
  minitransformer solution 06            show our solution, after yours has passed
  minitransformer progress               list all exercises with your progress
  minitransformer train reverse          train a model that reverses words, in about a minute
  minitransformer train shakespeare      train a model that writes plays, in about ten minutes
  minitransformer generate RUN           continue a prompt with a trained model
  minitransformer summary base           show the layers of the paper's base model
  minitransformer gradcheck              check the gradients of every backward pass
  minitransformer bench                  time a training step against PyTorch
  minitransformer lengths                test positional encodings beyond the training length
  minitransformer devices                list the available devices
"""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error in one line, without the list of all options."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report unknown options here, with the help of the command itself, instead of in the outer parser."""
        self.check_options(sys.argv[1:] if args is None else args)
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def check_options(self, words: Sequence[str]) -> None:
        """Report an unknown option before a subcommand, whose value would otherwise be taken for the subcommand."""
        subcommands = {
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name in action.choices
        }
        for word in itertools.takewhile(lambda word: word not in subcommands, words if subcommands else ()):
            name = word.partition("=")[0]
            is_option = name.startswith("-") and name.strip("-") and not name[1].isdigit()
            if is_option and not any(known.startswith(name) for known in self._option_string_actions):
                self.error(f"unrecognized arguments: {word}")

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
        message = re.sub(r"choose from .*\)$", lambda choices: choices[0].replace("'", ""), message)  # before 3.14
        self.exit(2, f"{one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")


def make_parser() -> Parser:
    """The parser with all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="minitransformer", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"minitransformer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION, formatter_class=raw)
        inner = module.add_arguments(command) or []  # parsers inside this one
        add_common_arguments(command, seed=argparse.SUPPRESS if inner else 0)
        for each in inner:
            add_common_arguments(each, *[argparse.SUPPRESS] * 3)
    return parser


def add_common_arguments(
    parser: argparse.ArgumentParser, seed: int | str = 0, backend: str | None = None, switch: bool | str = False
) -> None:
    """Add the options of every command, with these defaults. SUPPRESS leaves the value of an outer parser as it is."""
    common = parser.add_argument_group("options of every command")
    if "--seed" not in parser._option_string_actions:
        common.add_argument(
            "--seed", type=int, default=seed, metavar="N", help="seed of all random numbers (default 0)"
        )
    common.add_argument(
        "--backend", default=backend, metavar="NAME", help="numpy (CPU, the default) or cupy (NVIDIA GPU)"
    )
    common.add_argument("--json", action="store_true", default=switch, help="print the result as JSON in the last line")
    common.add_argument("--debug", action="store_true", default=switch, help="show the traceback if there is an error")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    0 is success, 1 a failed check or training, 2 bad input, 130 an interruption and 141 a closed pipe.
    """
    arguments = make_parser().parse_args(argv)
    try:
        check_arguments(arguments)
        if arguments.backend:
            use_backend(arguments.backend)
        status = COMMANDS[arguments.command].run(arguments)
        if sys.stdout:  # None if it was closed
            sys.stdout.flush()  # so that a full disk is noticed here
        return status
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except INPUT_ERRORS as error:
        if arguments.debug:
            raise
        print(f"minitransformer {arguments.command}: {error_message(error)}", file=sys.stderr)
        return 2
    except NotFiniteError as error:
        if arguments.debug:
            raise
        print(f"minitransformer {arguments.command}: {error}", *error.advice, sep="\n", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print(f"minitransformer {arguments.command}: {stopped}", file=sys.stderr)
        print(stopped.advice, file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print(f"minitransformer {arguments.command}: stopped", file=sys.stderr)
        return 130


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
