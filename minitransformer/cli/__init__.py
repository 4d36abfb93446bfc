"""The command line: `minitransformer COMMAND ...`, one file per command."""

import argparse
import os
import sys
from collections.abc import Sequence

from minitransformer import __version__
from minitransformer.backend import BackendUnavailableError, use_backend
from minitransformer.cli import (
    bench,
    check,
    devices,
    generate,
    gradcheck,
    hint,
    lengths,
    lesson,
    progress,
    solution,
    start,
    summary,
    train,
)
from minitransformer.cli.parsing import Parser, check_arguments, error_message
from minitransformer.training import NotFiniteError, Stopped

COMMANDS = {
    "lesson": lesson,
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
DESCRIPTION = """\
"Attention Is All You Need" by hand: every layer forward and backward, in NumPy, without autograd.

  minitransformer lesson                 list the lessons, in reading order
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
