"""The command line: `minitransformer COMMAND ...`, one file per command."""

import argparse
import contextlib
import difflib
import importlib
import math
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from minitransformer import __version__
from minitransformer.system.launcher import place_in
from minitransformer.system.signals import Interruptions, end_process
from minitransformer.system.terminal import (
    discard_output,
    error_message,
    is_closed_pipe,
    json_line,
    one_line,
    print_in_any_encoding,
    width,
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
        "gradcheck": "check every gradient, or just your own layer's",
    },
    "Learn": {
        "blank": "write a Transformer from a blank file, judged on each save",
        "hint": "show a hint for an exercise, one more each time",
        "solution": "show the solution of an exercise that you have passed",
        "progress": "show how far you are: exercises, lessons, the sitting",
        "init": "copy the lessons and exercises to your own folder",
    },
    "Train and use": {
        "evaluate": "score a language model on a text, or a translator on pairs",
        "embed": "find lines of a text that mean about the same",
        "summary": "show the layers, shapes and parameters of a model",
        "export": "write a trained model for Hugging Face's transformers",
        "devices": "list the available devices: the CPU, and NVIDIA GPUs",
    },
    "Experiments": {
        "bench": "time a training step against PyTorch",
        "experiment": "answer a question by measuring, or list all questions",
    },
}
COMMANDS = tuple(name for group in GROUPS.values() for name in group)
# the commands that draw random numbers, and those that compute on a GPU, too; `train` has a --seed of its own
WITH_SEED = ("generate", "explore", "gradcheck")
WITH_BACKEND = ("train", "generate", "translate", "embed", "evaluate", "gradcheck", "bench", "experiment")

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


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error in one line, without the list of all options."""

    subcommands: Iterable[str] = ()  # that the command line could have named

    def __init__(self, prog: str, **options: Any) -> None:
        wrapped = partial(argparse.RawDescriptionHelpFormatter, width=width() - 2)
        super().__init__(prog, formatter_class=wrapped, **options)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments that the words give. UsageError for words that mean nothing, with what may be meant."""
        arguments, unknown = self.parse_known_intermixed_args(words)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self.guess(*unknown)}")
        return arguments

    def guess(self, first: str, *others: str) -> str:
        """The end of a message about unknown words: the option that is like the first one, or --text."""
        if first in self.subcommands:
            return f": put {first} before the options"
        name, values = (first, others) if first.startswith("-") else ("--text", (first, *others))
        self.color = False  # Python 3.14 colors the help, which is searched here
        options = re.findall(r"^  (?:-h, )?(--[\w-]+)", self.format_help(), re.MULTILINE)
        return did_you_mean(name, options, 0.8, *values)

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
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


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6, *rest: str) -> str:
    """The end of a message about an unknown word: the known ones that are like it, and the rest; or nothing."""
    close = difflib.get_close_matches(word, known, 1 if rest else 3, cutoff)
    return f"; did you mean {' '.join((' or '.join(close), *rest))}?" if close else ""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line, `command` and `subcommand` among them. Imports the file of its command alone."""
    if not words or words[0].startswith("-"):
        overview().parse(words)
        raise UsageError("minitransformer", "give a command, such as `lesson` or `train reverse`")
    command, *rest = words
    check_known("minitransformer", "command", command, COMMANDS)
    module, prog, subcommand = import_command(command), f"minitransformer {command}", None
    kind, names = getattr(module, "SUBCOMMANDS", ("", {}))  # such as the tasks of `train`
    if names and rest and not rest[0].startswith("-"):
        subcommand = rest.pop(0)
        check_known(prog, kind, subcommand, names)
        prog = f"{prog} {subcommand}"
    parser, about = Parser(prog), module.DESCRIPTION
    if names:
        module.add_arguments(parser, subcommand)
    else:
        module.add_arguments(parser)
    if names and not subcommand:
        parser.subcommands = names
        about += f"\n{kind.capitalize()}s:\n\n{list_commands(names, max(map(len, names)) + 2)}"
    parser.description = wrap_help(parser.description or about, width())
    add_common_arguments(parser, command)
    parser.set_defaults(command=command, subcommand=subcommand)
    return parser.parse(rest)


def check_known(prog: str, kind: str, name: str, known: Iterable[str]) -> None:
    """UsageError, with what may be meant, unless a name is one of those that are known."""
    if name not in known:
        remedy = did_you_mean(name, known) or f"; {kind}s: {', '.join(known)}"
        raise UsageError(prog, f"there is no {kind} {name!r}{remedy}")


def overview() -> Parser:
    """The parser of a command line without a command."""
    lines = ['"Attention Is All You Need" by hand, in NumPy: every layer forward and backward, without autograd.']
    lines += [f"{title}:\n\n{list_commands(group)}" for title, group in GROUPS.items()]
    parser = Parser(
        "minitransformer",
        usage="minitransformer COMMAND ...",
        description=wrap_help("\n\n".join(lines), width()),
        epilog="minitransformer COMMAND --help shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"minitransformer {__version__}")
    return parser


def list_commands(group: Mapping[str, str], column: int = 12) -> str:
    """A line for each command of a group, with the explanations in one column."""
    return "\n".join(f"  {name:<{column}}{about}" for name, about in group.items())


def import_command(name: str) -> ModuleType:
    """The file of a command.

    It has DESCRIPTION, add_arguments(parser), and run(arguments), which returns the exit status and what --json prints.
    A command with SUBCOMMANDS gets the one that was chosen, or None, as the second argument of add_arguments.
    """
    return importlib.import_module(f"minitransformer.cli.{name}")


def add_common_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options that commands share, if they matter to this one."""
    group = parser.add_argument_group("common options")
    if command in WITH_SEED:
        group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default 0)")
    if command in WITH_BACKEND:
        group.add_argument("--backend", metavar="NAME", help="numpy (CPU, the default) or cupy (NVIDIA GPU)")
    group.add_argument("--json", action="store_true", help="print the result as JSON on the last line")
    group.add_argument("--debug", action="store_true", help="show the traceback if there is an error")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    0 is success, 1 a failed check or training, 2 bad input, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM and 141 a closed pipe.
    If the arguments are those of this process, these signals end it here. Of several processes, the first one speaks.
    """
    print_in_any_encoding()
    words = sys.argv[1:] if argv is None else list(argv)
    command = words[0] if words and words[0] in COMMANDS else ""
    arguments, interruptions = argparse.Namespace(command=command, debug=False), Interruptions()
    place = place_in(os.environ)
    several = place if place and place.size != 1 else None
    if several:
        from minitransformer.cli.processes import together
    with silence() if place and place.rank > 0 else contextlib.nullcontext():
        try:
            with interruptions, together(several, arguments) if several else contextlib.nullcontext():
                vars(arguments).update(vars(parse(words)))
                if several and command not in SHARED:
                    raise ValueError(
                        f"several processes cannot share this command, only {' and '.join(SHARED)}: leave out mpiexec"
                    )
                check_arguments(arguments)
                if getattr(arguments, "backend", None):
                    importlib.import_module("minitransformer.backend").use_backend(arguments.backend)
                status, answer = import_command(command).run(arguments)
                if arguments.json and answer is not None:
                    print(json_line(answer))
                if sys.stdout:  # None if it was closed
                    sys.stdout.flush()  # so that a full disk is noticed here
                return status
        except (Exception, KeyboardInterrupt) as error:
            if is_closed_pipe(error):  # by its reader, such as `head`
                discard_output()
                return 141
            if interruptions.received or isinstance(error, KeyboardInterrupt):
                complain(arguments, "stopped")
                number = interruptions.received or signal.SIGINT
                if argv is None:
                    end_process(number)
                return 128 + number
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
    if hasattr(arguments, "runs"):
        from minitransformer.system.files import check_folder

        check_folder(arguments.runs)
