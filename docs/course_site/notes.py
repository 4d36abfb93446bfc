"""A file of lessons/one_file beside its notes: NAME.notes.md says something about each few lines of NAME.py.

`## Title` begins a section; if the file has a class or function of this name, it begins there. A heading of the third
order is a line of code, without indentation and comment: the first such line after the last one that had a note. The
note, in Markdown, is about this line and those after it, up to the next line with a note or the next section.
"""

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "lessons" / "one_file"
HEADING = re.compile(r"^(##|###) (.+)$", flags=re.MULTILINE)


class Block(NamedTuple):
    """Some lines of a file, and the note on them."""

    section: str
    first: int  # the number of the first line, from 0
    code: str
    note: str


def code_of(line: str) -> str:
    """A line without its indentation and its comment."""
    return line.partition("  # ")[0].strip() if line.strip() else ""


def find(key: str, lines: list[str], start: int) -> int:
    """The first line at or after `start` that is this code."""
    for number in range(start, len(lines)):
        if code_of(lines[number]) == key:
            return number
    raise ValueError(f"no line after line {start} is {key!r}")


def entries(text: str) -> list[tuple[str, str, str]]:
    """(section, key, note) of each note."""
    section, found = "", []
    _, *parts = HEADING.split(text)
    for order, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if order == "##":
            section = title
        else:
            found.append((section, title.strip("`"), body.strip()))
    return found


def blocks(source: str, notes: str) -> list[Block]:
    """The blocks of a file, in order. Its lines before the first key are in none."""
    lines, places, section, at = source.splitlines(), [], "", 0
    for title, key, note in entries(notes):
        if title != section and (begun := re.search(rf"^(?:class|def) {title}\b", source, flags=re.MULTILINE)):
            at = source.count("\n", 0, begun.start())
        section, at = title, find(key, lines, at)
        places.append((section, at, note))
        at += 1
    ends = [first for _, first, _ in places[1:]] + [len(lines)]
    return [
        Block(title, first, "\n".join(lines[first:end]).rstrip(), note)
        for (title, first, note), end in zip(places, ends, strict=True)
    ]


def read(name: str) -> list[Block]:
    """The blocks of lessons/one_file/NAME.py."""
    return blocks(*((FOLDER / f"{name}{ending}").read_text("utf-8") for ending in (".py", ".notes.md")))
