"""Prompts and answers on a terminal, or line by line from another input: for `generate` and `translate`."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minitransformer.system.files import read_lines


class Dialogue(NamedTuple):
    """A model that answers prompts. There is a function that makes one for each kind of model."""

    greeting: str  # what a prompt looks like
    answer: Callable[[str, bool], dict[str, Any]]  # answer(prompt, brief) prints the answer -> values for JSON
    command: str = "generate"


def converse(dialogue: Dialogue) -> tuple[int, list[Any]]:
    """Answer prompt after prompt, from a terminal or from another input -> exit status, and all answers.

    From another input, each line is a prompt, and the answers of toy and masked models have one line each. An empty
    line gets an empty line, and so does a prompt that is refused; then the exit status is 2.
    """
    terminal = on_terminal()
    results: list[dict[str, Any]] = []
    try:
        for prompt in typed_prompts(dialogue.greeting) if terminal else lines_of_input():
            result: dict[str, Any] = {"prompt": prompt}
            try:
                result = dialogue.answer(prompt, not terminal) if prompt else result
            except ValueError as error:
                result["error"] = str(error)
                print(f"minitransformer {dialogue.command}: {error}", file=sys.stderr)
            if "text" not in result and not terminal:
                print()
            results.append(result)
            sys.stdout.flush()
    except KeyboardInterrupt:
        if not terminal:
            raise
        print()
    return 2 if not terminal and any("error" in result for result in results) else 0, results


def on_terminal() -> bool:
    """Whether a person types the input and sees the output."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def typed_prompts(greeting: str) -> Iterator[str]:
    """The lines that are typed, except for empty ones, until Ctrl-D."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, lets `input` edit the line and remember earlier ones
    print(f"{greeting}; Ctrl-D ends.")
    with contextlib.suppress(EOFError):
        while True:
            prompt = input("> ")
            if prompt:
                yield prompt
    print()


def lines_of_input(remedy: str = "there is no input to read prompts from: give --prompt") -> Iterator[str]:
    """The lines of standard input, in UTF-8 on any system. Raises ValueError for a line that is not.

    `remedy` is the message of the ValueError if it is closed.
    """
    if sys.stdin is None:
        raise ValueError(remedy)
    if hasattr(sys.stdin, "reconfigure") and not os.environ.get("PYTHONIOENCODING"):
        sys.stdin.reconfigure(encoding="utf8", errors="surrogateescape")
    for number, line in enumerate(read_lines(sys.stdin), start=1):
        if not line.isascii() and re.search("[\udc80-\udcff]", line):
            raise ValueError(f"the input is not text in UTF-8: line {number} cannot be read")
        yield line
