"""What docs/museum.md shows of the exhibits: how many there are, and each of them. The site writes both into it."""

import inspect
import json
import re
import textwrap
from collections import Counter
from pathlib import Path

from tests.museum import (
    NUMPY,
    exhibits_decoding,
    exhibits_functions,
    exhibits_layers,
    exhibits_preferences,
    exhibits_training,
)
from tests.museum.exhibits import EXHIBITS, SOURCES

CAUGHT_BY = Path(__file__).with_name("caught_by.json")
RIGHT = re.compile(r"^(?P<wrong>.+)\n\s*# right: (?P<right>.+)$", re.MULTILINE)  # in a wrong function
GROUPS = {
    "Patients of lesson 15": EXHIBITS[: len(SOURCES)],
    "Softmax, attention, norms, losses, positions": exhibits_functions.EXHIBITS,
    "Learning from preferences": exhibits_preferences.EXHIBITS,
    "Layers and models": exhibits_layers.EXHIBITS,
    "Decoding, evaluation and data": exhibits_decoding.EXHIBITS,
    "Training": exhibits_training.EXHIBITS,
}


def lines_of(exhibit):
    """The wrong lines and the right ones of each changed function -> [(wrong, right)]."""
    pairs = []
    for change in exhibit.changes.values():
        if callable(change):
            pairs += [(match["wrong"], match["right"]) for match in RIGHT.finditer(inspect.getsource(change))]
        else:
            pairs.append((change[1], change[0]))
    return list(dict.fromkeys(pairs))


def flush(text):
    """`text` with its lines at the left edge; the first one begins there already."""
    first, newline, rest = text.partition("\n")
    return f"{first.strip()}{newline}{textwrap.dedent(rest)}"


def marked(mark, text):
    """The lines of one side of a change."""
    return textwrap.indent("(nothing)" if text == "pass" else flush(text), f"{mark} ")


def linked(source):
    """Where it was published, as a link if it has an issue's number."""
    repository, _, number = source.partition(" #")
    return f"[{source}](https://github.com/{repository}/issues/{number})" if number else source


def found_by(check):
    """The check that finds it, in words: a test, which has a file, or a row of the gradient checks."""
    file, _, test = check.partition("::")
    return f"[`{test.partition('[')[0]}`](../{file})" if test else f"the gradient check of `{check.partition(': ')[2]}`"


def entry(exhibit, check):
    """One exhibit."""
    change = "\n".join(f"{marked('-', wrong)}\n{marked('+', right)}" for wrong, right in lines_of(exhibit))
    places = " and ".join(f"`{function.replace(':', '.')}`" for function in exhibit.changes)
    name = exhibit.name[0].upper() + exhibit.name[1:]
    lesson = exhibit.lesson.removeprefix("Published. ")
    return (
        f"**{name}.** {lesson}\n\n```diff\n{change}\n```\n\n"
        f"Published: {linked(exhibit.source)}. Here: {places}. Found by {found_by(check)}.\n"
    )


def by_gradient(check):
    """Whether a check compares gradients with derivatives of the forward pass."""
    return "::" not in check or "complex_step" in check


def kind(check):
    """Where a check stands, in words."""
    if "::" not in check:
        return "the table of gradient checks"
    return f"`tests/{check.split('/')[1]}`" if check.count("/") > 1 else "`tests`"


def summary():
    """How many bugs there are, from where, and what finds them."""
    checks = json.loads(CAUGHT_BY.read_text("utf-8"))
    projects = {exhibit.source.partition(" #")[0] for exhibit in EXHIBITS} - {NUMPY}
    kinds = Counter(kind(checks[exhibit.name]) for exhibit in EXHIBITS)
    return (
        f"{len(EXHIBITS)} bugs from {len(projects)} named projects and five that aren't named, each found by the test "
        f"beside it: {', '.join(f'{count} by {name}' for name, count in kinds.most_common())}. "
        f"{sum(by_gradient(checks[exhibit.name]) for exhibit in EXHIBITS)} are found by comparing a backward pass with "
        "its forward pass."
    )


def exhibits():
    """Every bug under the title of its group."""
    checks, parts = json.loads(CAUGHT_BY.read_text("utf-8")), []
    for title, group in GROUPS.items():
        noticed = sum(by_gradient(checks[exhibit.name]) for exhibit in group)
        parts.append(f"## {title}\n\n{len(group)} bugs, {noticed} of them found by a gradient check.\n")
        parts += [entry(exhibit, checks[exhibit.name]) for exhibit in group]
    return "\n".join(parts)
