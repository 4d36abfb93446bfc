"""The command line: `minitransformer COMMAND ...`, one file per command."""

import argparse
import contextlib
import importlib
import itertools
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from minitransformer import __version__
from minitransformer.system.launcher import place_in
from minitransformer.system.signals import Interruptions, end_process
from minitransformer.system.terminal import (
    WIDEST,
    discard_output,
    error_message,
    one_line,
    print_in_any_encoding,
    wrap_help,
)

# the file of each command is imported when the command is used
COMMANDS = {
    "lesson": "list the lessons, or run one",
    "init": "make a folder of your own with the lessons and exercises",
    "start": "start an exercise: copy its file to your folder",
    "check": "check your exercises, and name your mistakes",
    "hint": "show a hint: first a question, then what is missing, then the shapes",
    "progress": "list all exercises with your progress",
    "solution": "show the solution of an exercise that you have passed",
    "train": "train a model on a toy task or on text, and evaluate it on held-out data",
    "generate": "give a trained model a prompt: reverse a word, continue a text, fill in masks",
    "translate": "translate sentences with a trained model, one by one or a whole file",
    "explore": "open a page with every number of a small model, forward and backward",
    "summary": "show the layers, output shapes and parameters of a configuration",
    "gradcheck": "check every backward pass to machine precision",
    "bench": "time a training step against PyTorch eager and the matrix product",
    "lengths": "test all positional encodings on sequences longer than in training",
    "sharpness": "find the largest eigenvalues of the Hessian of a trained model's loss",
    "compare": "measure what attention replaced: recurrent and convolutional layers",
    "devices": "list the available devices: the CPU, and NVIDIA GPUs through CuPy",
}

# errors that bad input or the system causes; they get one line and exit status 2
INPUT_ERRORS = (
    ValueError,
    TypeError,
    IndexError,
    OSError,
    OverflowError,
    MemoryError,
    RuntimeError,  # an unusable backend, no more threads
    ImportError,  # a missing package, no memory for a library
)
SHARED = ("train",)  # commands that several processes share
MAX_INTEGER = 2**63 - 1
DESCRIPTION = """\
"Attention Is All You Need" by hand: every layer forward and backward, in NumPy, without autograd.

  minitransformer lesson             list the lessons, in reading order
  minitransformer init course        copy the lessons and exercises to a folder
  minitransformer start 06           start the exercises of lesson 06
  minitransformer check 06           check your solutions, name your mistakes
  minitransformer hint 06            show the next hint
  minitransformer solution 06        show our solution, once yours has passed
  minitransformer progress           list all exercises with your progress
  minitransformer train reverse      train a model to reverse words (a minute)
  minitransformer train shakespeare  train a model to write plays (ten minutes)
  minitransformer generate RUN       continue a prompt with a trained model
  minitransformer translate RUN      translate sentences with a trained model
  minitransformer explore            see every number of a model in the browser
  minitransformer summary base       show the layers of the paper's base model
  minitransformer gradcheck          check the gradients of every backward pass
  minitransformer bench              time a training step against PyTorch
  minitransformer lengths            test sequences longer than in training
  minitransformer sharpness RUN      find the eigenvalues of the Hessian
  minitransformer compare            measure what attention replaced
  minitransformer devices            list the available devices
"""


class HelpFormatter(argparse.HelpFormatter):
    """Wraps the paragraphs of a description, and leaves its examples in lines of their own."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **options)
        self._width = min(self._width, WIDEST)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrap_help(text, width)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error in one line, without the list of all options.

    `declare(parser)` adds the arguments when the parser is used: only then is the file of a command imported, and
    what that imports. `refused` holds what is said about options that this parser does not have, but others do.
    """

    def __init__(self, *, declare: Callable[[Any], None] | None = None, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, **options})
        self._declare = declare
        self.refused: dict[str, str] = {}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report unknown options here, with the help of the command itself, instead of in the outer parser."""
        if self._declare:
            self._declare(self)
            self._declare = None
        self.check_options(sys.argv[1:] if args is None else args)
        namespace, unknown = super().parse_known_args(args, namespace)
        lists = [action.dest for action in self._actions if action.nargs == "*" and not action.option_strings]
        if unknown and lists and not any(is_option(word) for word in unknown):  # argparse leaves those after an option
            setattr(namespace, lists[-1], [*getattr(namespace, lists[-1]), *unknown])
            unknown = []
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def check_options(self, words: Sequence[str]) -> None:
        """Raise ValueError for an option that is refused, before any subcommand.

        Also report an option that is unknown there: its value would otherwise be taken for the subcommand.
        """
        subcommands = {
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name in action.choices
        }
        for word in itertools.takewhile(lambda word: word not in subcommands, words):
            name = word.partition("=")[0]
            if name in self.refused:
                raise ValueError(self.refused[name])
            if (
                subcommands
                and is_option(name)
                and not any(known.startswith(name) for known in self._option_string_actions)
            ):
                self.error(f"unrecognized arguments: {word}")

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
        message = re.sub(r"choose from .*\)$", lambda choices: choices[0].replace("'", ""), message)  # before 3.14
        self.exit(2, f"{one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")


def is_option(word: str) -> bool:
    """Whether a word of the command line is an option: no number, and no sentence that begins with a dash."""
    return word.startswith("-") and bool(word.strip("-")) and not word[1].isdigit() and " " not in word


def make_parser() -> Parser:
    """The parser with all commands."""
    parser = Parser(prog="minitransformer", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"minitransformer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, about in COMMANDS.items():
        commands.add_parser(name, help=about, declare=partial(declare_arguments, command=name))
    return parser


def import_command(name: str) -> ModuleType:
    """The file of the command: it has DESCRIPTION, add_arguments(parser) and run(arguments)."""
    return importlib.import_module(f"minitransformer.cli.{name}")


def declare_arguments(parser: Parser, command: str) -> None:
    """Add the arguments of the command, and those of every command."""
    module = import_command(command)
    parser.description = module.DESCRIPTION
    module.add_arguments(parser)
    add_common_arguments(parser)


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

    0 is success, 1 a failed check or training, 2 bad input, 130 Ctrl-C, 143 SIGTERM and 141 a closed pipe. If the
    arguments are those of this process, Ctrl-C and SIGTERM end it here. Of several processes, the first one speaks.
    """
    print_in_any_encoding()
    place = place_in(os.environ)
    with silence() if place and place.rank > 0 else contextlib.nullcontext():
        return run_and_explain(argv)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A `with` block that prints nothing."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        yield


def run_and_explain(argv: Sequence[str] | None) -> int:
    """Run one command, and print its error in one line -> exit status."""
    arguments, interruptions = argparse.Namespace(command="", debug=False), Interruptions()
    try:
        with interruptions:
            make_parser().parse_args(argv, arguments)
            return run_command(arguments)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        discard_output()
        return 141
    except (Exception, KeyboardInterrupt) as error:
        if interruptions.received or isinstance(error, KeyboardInterrupt):
            return stop(arguments, interruptions.received or signal.SIGINT, end_now=argv is None)
        if arguments.debug:
            raise
        return explain(error, arguments)


def stop(arguments: argparse.Namespace, number: int, end_now: bool) -> int:
    """Say that the command was stopped by the signal `number` -> exit status, or end the process (`end_now`)."""
    complain(arguments, "stopped")
    if end_now:
        end_process(number)
    return 128 + number


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command that the arguments name -> exit status."""
    place = place_in(os.environ)
    if place and place.size != 1 and arguments.command not in SHARED:
        raise ValueError(f"several processes cannot share this command, only {' and '.join(SHARED)}: leave out mpiexec")
    check_arguments(arguments)
    if arguments.backend:
        from minitransformer.backend import use_backend

        use_backend(arguments.backend)
    status = import_command(arguments.command).run(arguments)
    if sys.stdout:  # None if it was closed
        sys.stdout.flush()  # so that a full disk is noticed here
    return status


def explain(error: BaseException, arguments: argparse.Namespace, where: str = "") -> int:
    """Print `where` and what was wrong -> exit status. Raises the error again if only a bug can cause it."""
    if isinstance(error, INPUT_ERRORS):
        complain(arguments, where + error_message(error))
        return 2
    from minitransformer.training import NotFiniteError, Stopped

    if isinstance(error, NotFiniteError):
        complain(arguments, f"{where}{error}", *error.advice)
        return 1
    if isinstance(error, Stopped):
        complain(arguments, f"{where}{error}", error.advice)
        return 130
    raise error


def complain(arguments: argparse.Namespace, *lines: object) -> None:
    """Print lines on stderr, the first one after the name of the command."""
    print(f"minitransformer {arguments.command}".rstrip() + f": {lines[0]}", *lines[1:], sep="\n", file=sys.stderr)


def check_arguments(arguments: argparse.Namespace) -> None:
    """ValueError for numbers that no option accepts, OSError for output folders that cannot be written.

    The options of `train` are checked where they are declared, see recipes/options.py.
    """
    if arguments.command == "train":
        return
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
            from minitransformer.system.files import check_folder

            check_folder(getattr(arguments, name))
