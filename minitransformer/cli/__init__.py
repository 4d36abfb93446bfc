"""The command line: `minitransformer COMMAND ...`, one file a command."""

import argparse
import os
import sys

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
from minitransformer.cli.parsing import Parser, check_arguments, in_words
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

REFUSALS = (ValueError, TypeError, IndexError, OSError, OverflowError, MemoryError, NotImplementedError)
REFUSALS += (BackendUnavailableError,)
DESCRIPTION = """\
"Attention Is All You Need" by hand: every layer forward and backward, in NumPy, without autograd.

  minitransformer lesson                 the lessons, to be read in order
  minitransformer start 06               begin the exercises of lesson 06
  minitransformer check 06               what is right in them, and which mistake was made
  minitransformer hint 06                a hint, and then another
  minitransformer solution 06            a right answer, once you have one
  minitransformer progress               all exercises, and how far you are
  minitransformer train reverse          learn to reverse words, in about a minute
  minitransformer train shakespeare      learn to write plays, in about ten minutes
  minitransformer generate RUN           go on where a prompt ends
  minitransformer summary base           what the paper's model is made of
  minitransformer gradcheck              prove every backward pass
  minitransformer bench                  time a training step against PyTorch
  minitransformer lengths                which positions carry beyond the lengths learnt
  minitransformer devices                what there is to compute on
"""


def make_parser():
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


def add_common_arguments(parser, seed=0, backend=None, switch=False):
    """What every command takes, with these defaults."""
    common = parser.add_argument_group("every command")
    if "--seed" not in parser._option_string_actions:
        common.add_argument("--seed", type=int, default=seed, help="of all random numbers (default 0)")
    common.add_argument("--backend", default=backend, help="numpy (the CPU, the default) or cupy (an NVIDIA GPU)")
    common.add_argument("--json", action="store_true", default=switch, help="print one machine-readable last line")
    common.add_argument("--debug", action="store_true", default=switch, help="show the traceback of an error")


def main(argv=None):
    """Run one command -> exit status: 0 well, 1 checked and found wrong, or gone wrong in training, 2 bad input."""
    arguments = make_parser().parse_args(argv)
    try:
        check_arguments(arguments)
        if arguments.backend:
            use_backend(arguments.backend)
        status = COMMANDS[arguments.command].run(arguments)
        if sys.stdout:  # None where it was closed
            sys.stdout.flush()  # a full disk is to be noticed here
        return status
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except REFUSALS as error:
        if arguments.debug:
            raise
        print(f"minitransformer {arguments.command}: {in_words(error)}", file=sys.stderr)
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
