"""The command line: `minitransformer COMMAND ...`, one file per command."""

import argparse
import contextlib
import difflib
import importlib
import itertools
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from minitransformer import __version__
from minitransformer.system.launcher import Place, place_in
from minitransformer.system.signals import Interruptions, end_process
from minitransformer.system.terminal import (
    WIDEST,
    advanced_options,
    discard_output,
    error_message,
    is_closed_pipe,
    one_line,
    print_in_any_encoding,
    wrap_help,
)

# what `minitransformer --help` lists; the file of each command is imported when the command is used
GROUPS = {
    "Everyday commands": {
        "lesson": "list the lessons; `lesson 00` runs one",
        "sit": "backprop through a Transformer by hand, in one sitting",
        "start": "start the next exercise",
        "check": "check your exercises, and name your mistakes",
        "train": "train a model; `train reverse` takes half a minute",
        "generate": "give a trained model a prompt",
        "translate": "translate with a trained model",
        "explore": "see every number of a small model in the browser",
        "gradcheck": "check every gradient, or those of your own layer",
    },
    "Learn": {
        "hint": "show a hint for an exercise, each time one more",
        "solution": "show the solution of an exercise that you have passed",
        "progress": "list all exercises with your progress",
        "init": "copy the lessons and exercises to a folder of your own",
    },
    "Train and use": {
        "evaluate": "find the perplexity of a language model on a text",
        "summary": "show the layers, shapes and parameters of a model",
        "devices": "list the available devices: the CPU, and NVIDIA GPUs",
    },
    "Prove": {
        "sharpness": "find how much the loss of a trained model curves",
    },
    "Experiments": {
        "bench": "time a training step against PyTorch",
        "experiment": "answer a question by measuring; alone, list all questions",
    },
}
COMMANDS = tuple(name for group in GROUPS.values() for name in group)
# the commands that draw random numbers, and those that compute on a GPU, too; `train` has a --seed of its own
WITH_SEED = ("generate", "explore", "gradcheck", "sharpness")
WITH_BACKEND = ("train", "generate", "translate", "evaluate", "gradcheck", "sharpness", "bench", "experiment")

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
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self.guess(*unknown)}")
        return namespace, unknown

    def guess(self, word: str, *others: str) -> str:
        """The end of a message about unknown words: the option that is meant, if one is like the first, or --text."""
        name, value = (word, others) if is_option(word) else ("--text", (word, *others))
        close = difflib.get_close_matches(name, self._option_string_actions, 1, cutoff=0.8)
        return f"; did you mean {' '.join((*close, *value))}?" if close else ""

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
        raise UsageError(self.prog, message)


class UsageError(SystemExit):
    """Arguments that argparse refuses: the message is printed, and the status is 2."""

    def __init__(self, prog: str, message: str) -> None:
        super().__init__(2)
        self.prog, self.message = prog, message
        self.say()

    def say(self, where: str = "") -> None:
        """Print `where` and the message."""
        print(f"{one_line(f'{self.prog}: {where}{self.message}')} (see {self.prog} --help)", file=sys.stderr)


def is_option(word: str) -> bool:
    """Whether a word of the command line is an option: no number, and no sentence that begins with a dash."""
    return word.startswith("-") and bool(word.strip("-")) and not word[1].isdigit() and " " not in word


def make_parser() -> Parser:
    """The parser with all commands."""
    lines = ['"Attention Is All You Need" by hand, in NumPy: every layer forward and backward,\nwithout autograd.']
    lines += [f"\n{title}:\n{list_commands(group)}" for title, group in GROUPS.items()]
    parser = Parser(
        prog="minitransformer",
        usage="minitransformer COMMAND ...",
        description="\n".join(lines),
        epilog="minitransformer COMMAND --help explains a command, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"minitransformer {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog=parser.prog, help=argparse.SUPPRESS
    )
    for name in COMMANDS:
        commands.add_parser(name, declare=partial(declare_arguments, command=name))
    return parser


def list_commands(group: Mapping[str, str]) -> str:
    """A line for each command of a group."""
    return "\n".join(f"  {name:<12}{about}" for name, about in group.items())


def import_command(name: str) -> ModuleType:
    """The file of the command: it has DESCRIPTION, add_arguments(parser) and run(arguments)."""
    return importlib.import_module(f"minitransformer.cli.{name}")


def declare_arguments(parser: Parser, command: str) -> None:
    """Add the arguments of the command, and those that it shares with others."""
    module = import_command(command)
    parser.description = module.DESCRIPTION
    module.add_arguments(parser)
    add_common_arguments(parser, command)


def add_common_arguments(parser: argparse.ArgumentParser, command: str, inside: bool = False) -> None:
    """Add the options that commands share, if they matter to this one.

    Those of a parser inside another one leave the values of the outer one as they are.
    """
    group = advanced_options(parser)

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if inside else value

    if command in WITH_SEED:
        group.add_argument(
            "--seed", type=int, default=default(0), metavar="N", help="seed of all random numbers (default 0)"
        )
    if command in WITH_BACKEND:
        group.add_argument(
            "--backend",
            default=default(None),
            metavar="NAME",
            help="numpy (CPU, the default) or cupy (NVIDIA GPU)",
        )
    switch = {"action": "store_true", "default": default(False)}
    group.add_argument("--json", help="print the result as JSON in the last line", **switch)
    group.add_argument("--debug", help="show the traceback if there is an error", **switch)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    0 is success, 1 a failed check or training, 2 bad input, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM and 141 a closed pipe.
    If the arguments are those of this process, these signals end it here. Of several processes, the first one speaks.
    """
    print_in_any_encoding()
    arguments, interruptions = argparse.Namespace(command="", debug=False), Interruptions()
    place = place_in(os.environ)
    with silence() if place and place.rank > 0 else contextlib.nullcontext():
        try:
            with interruptions, joined(place, arguments):
                make_parser().parse_args(argv, arguments)
                if place and place.size != 1 and arguments.command not in SHARED:
                    raise ValueError(
                        f"several processes cannot share this command, only {' and '.join(SHARED)}: leave out mpiexec"
                    )
                check_arguments(arguments)
                if getattr(arguments, "backend", None):
                    importlib.import_module("minitransformer.backend").use_backend(arguments.backend)
                status = import_command(arguments.command).run(arguments)
                if sys.stdout:  # None if it was closed
                    sys.stdout.flush()  # so that a full disk is noticed here
                return status
        except (Exception, KeyboardInterrupt) as error:
            if is_closed_pipe(error):  # by its reader, such as `head`
                discard_output()
                return 141
            if interruptions.received or isinstance(error, KeyboardInterrupt):
                return stop(arguments, interruptions.received or signal.SIGINT, end_now=argv is None)
            if arguments.debug:
                raise
            return explain(error, arguments)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A `with` block that prints nothing."""
    with (
        open(os.devnull, "w", encoding="utf8") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        yield


def joined(place: Place | None, arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """A context in which this process works with all that a launcher has started, if it is not alone."""
    if place is None or place.size == 1:
        return contextlib.nullcontext()
    from minitransformer.cli.processes import together

    return together(place, arguments)


def stop(arguments: argparse.Namespace, number: int, end_now: bool) -> int:
    """Say that the command was stopped by the signal `number` -> exit status, or end the process (`end_now`)."""
    complain(arguments, "stopped")
    if end_now:
        end_process(number)
    return 128 + number


def explain(error: BaseException, arguments: argparse.Namespace, where: str = "") -> int:
    """Print `where` and what was wrong -> exit status. Raises the error again if only a bug can cause it."""
    if isinstance(error, INPUT_ERRORS):
        complain(arguments, where + error_message(error))
        return 2
    from minitransformer.training import NotFiniteError
    from minitransformer.training.saving.checkpointer import Stopped

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
