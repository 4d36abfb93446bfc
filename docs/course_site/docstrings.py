"""Docstrings, which are plain text, as reStructuredText that shows them as they are.

Paragraphs stay paragraphs, with `code` in them. Aligned lines (formulas, tables) become blocks in which every space
counts. "Fields:" becomes a list.
"""

import re
import textwrap

from numpy.typing import DTypeLike
from sphinx.util.typing import stringify_annotation

DTYPES = stringify_annotation(DTypeLike, "smart")
CODE = re.compile(r"`([^`\n]+)`")
SPECIAL = re.compile(r"([\\*`|_<>\[\]:])")
FIELD = re.compile(r"^ {4}(\w+): (.*)$")
ALIGNED = re.compile(r"\S {3,}\S|\n +\S|^ ")


def escape(text: str) -> str:
    """Text without any sign that reStructuredText would read."""
    return SPECIAL.sub(r"\\\1", text)


def prose(text: str) -> str:
    """A paragraph as one line, with `code` as code; the invisible "\\ " keeps its beginning from being a list's."""
    parts = CODE.split(" ".join(text.split()))
    return "\\ " + "".join(f"\\ ``{part}``\\ " if i % 2 else escape(part) for i, part in enumerate(parts))


def fields(text: str) -> list[str]:
    """The lines of a list of fields, "    name: what it is"."""
    lines, first = [], True
    for line in text.splitlines():
        if found := FIELD.match(line):
            lines += [] if first else [""]
            lines += [f"- ``{found[1]}``\\ : {prose(found[2])}"]
            first = False
        else:
            lines[-1] += f" {prose(line)}"
    return [*lines, ""]


def as_rest(docstring: str) -> list[str]:
    """The lines of a docstring, without common indentation, as reStructuredText."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip("\n")):
        head, _, rest = paragraph.partition("\n")
        if head == "Fields:" and FIELD.match(rest.partition("\n")[0]):
            lines += ["Fields\\:", "", *fields(rest)]
        elif ALIGNED.search(paragraph):
            block = textwrap.dedent(paragraph).splitlines()
            lines += [".. code-block:: formula", "", *(f"   {line}" for line in block), ""]
        else:
            lines += [prose(paragraph), ""]
    return lines


def rewrite(app, what, name, obj, options, lines):
    """The hook of autodoc: replace the lines of a docstring."""
    lines[:] = as_rest("\n".join(lines))


def shorten(app, what, name, obj, options, signature, returned):
    """The hook of autodoc for signatures: NumPy's name for what it takes as a dtype, instead of all that it takes."""
    return (signature.replace(DTYPES, "DTypeLike") if signature else signature), returned
