"""`python -m tests.museum.page`: write docs/museum.md, the museum for readers, from its exhibits."""

import inspect
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
from tests.museum.search import read_table
from tests.mutation.checks import GRADIENT

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "museum.md"
RIGHT = re.compile(r"^(?P<wrong>.+)\n\s*# right: (?P<right>.+)$", re.MULTILINE)  # in a wrong function
GROUPS = {
    "Patients of lesson 15": EXHIBITS[: len(SOURCES)],
    "Softmax, attention, norms, losses, positions": exhibits_functions.EXHIBITS,
    "Learning from preferences": exhibits_preferences.EXHIBITS,
    "Layers and models": exhibits_layers.EXHIBITS,
    "Decoding, evaluation and data": exhibits_decoding.EXHIBITS,
    "Training": exhibits_training.EXHIBITS,
}
HEAD = """\
# The museum of published bugs

Every bug on this page was really published: in a repository, where somebody reported or mended it. The tests plant each
of them in this library, and one test must then fail. If it does not, the tests are not good enough.

**{bugs} bugs, from {projects} named projects and five that are not named.**

{groups}

**What finds them.** {gradients} of the bugs are found here by a gradient check, which compares a backward pass with its
forward pass. Two kinds of bugs pass every such check. In one, forward and backward are wrong in the same way: scores
that are divided by the wrong root, heads that are split by a reshape alone. In the other, nothing is differentiated:
decoding, data, the loop of training. They take tests that compare with something outside, a formula in plain loops or a
number worked out by hand, and tests of what must not matter, such as padding, later tokens, or the rest of a batch.

**Where the test is that finds them.** It is named with each bug below, and for most bugs it is one of many that fail.

{tests}

In each change, the line with a minus is the wrong one, and the line with a plus is ours. Six NumPy Transformers with
hand-written backward passes were read for [lesson 15](../lessons/15_debugging_clinic.py). Five of them had bugs; they
are not named. `python -m tests.museum.page` writes this page.
"""


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


def found_by(name):
    """The check that finds it, in words."""
    if name.startswith(GRADIENT):
        return f"the gradient check of `{name.removeprefix(GRADIENT)}`"
    file, _, test = name.partition("::")
    return f"[`{test.partition('[')[0]}`](../{file})"


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
    return check.startswith(GRADIENT) or "complex_step" in check


def kind(check):
    """Where a check stands, in words."""
    if check.startswith(GRADIENT):
        return "the table of gradient checks"
    return f"`tests/{check.split('/')[1]}`" if check.count("/") > 1 else "`tests`"


def make_page():
    """The text of the page."""
    table = read_table()
    kinds = Counter(kind(table[exhibit.name]) for exhibit in EXHIBITS)
    head = HEAD.format(
        bugs=len(EXHIBITS),
        projects=len({exhibit.source.partition(" #")[0] for exhibit in EXHIBITS} - {NUMPY}),
        groups="\n".join(f"* {title}: {len(exhibits)}" for title, exhibits in GROUPS.items()),
        gradients=sum(by_gradient(table[exhibit.name]) for exhibit in EXHIBITS),
        tests="\n".join(f"* {name}: {count}" for name, count in kinds.most_common()),
    )
    parts = [textwrap.dedent(head)]
    for title, exhibits in GROUPS.items():
        noticed = sum(by_gradient(table[exhibit.name]) for exhibit in exhibits)
        parts.append(f"## {title}\n\n{len(exhibits)} bugs, {noticed} of them found by a gradient check.\n")
        parts += [entry(exhibit, table[exhibit.name]) for exhibit in exhibits]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf8")
    print(f"wrote {PAGE}")
