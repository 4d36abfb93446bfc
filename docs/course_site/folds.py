"""What a reader may skip is folded: Going deeper, questions from earlier lessons, answers, and the code around them.

What answers a question is folded too, to the end of its section, after the gate that asks it (asking.py).

A fold is an HTML `details` inside its section, so the heading stays in sight, in the table of contents, and a target
for links. course.js opens folds for links and for print.
"""

import html
import re

from docutils import nodes

from minitransformer.course import FOLDED, RECALL

from .asking import GATE

TITLED = {f"tag_{title.lower()}": title for title in FOLDED}  # the classes of cells with a title
CODE = {"Questions": "Code that gives away some answers", "Answers": "The code at the end: pictures and last checks"}
MINUTES = re.compile(r"going deeper (\d+)")


class Fold(nodes.General, nodes.Element):
    """What is folded, with a `summary` and a `kind`."""


def visit_fold(translator, node):
    """Begin the details."""
    translator.body.append(f'<details class="fold {node["kind"]}"><summary>{html.escape(node["summary"])}</summary>\n')


def depart_fold(translator, node):
    """End the details."""
    translator.body.append("</details>\n")


def fold(parent, first, end, summary, kind):
    """Fold the children of `parent` from `first` to before `end`."""
    inside = parent.children[first:end]
    if inside:
        del parent[first:end]
        parent.insert(first, Fold("", *inside, summary=summary, kind=kind))


def is_code(node):
    """Whether this is a cell of code."""
    return isinstance(node, nodes.container) and "cell" in node.get("classes", ())


def fold_lesson(doctree):
    """Fold the parts of a lesson that come after its core."""
    for cell in [node for node in doctree.findall(is_code) if TITLED.keys() & set(node["classes"])]:
        (tag,) = TITLED.keys() & set(cell["classes"])
        place = cell.parent.index(cell)
        fold(cell.parent, place, place + 1, TITLED[tag], "code")
    for gate in reversed([node for node in doctree.findall(nodes.raw) if node.astext().startswith(GATE)]):
        fold(gate.parent, gate.parent.index(gate) + 1, None, "Show the answer, and go on", "gated")
    minutes = MINUTES.search(doctree.astext())
    for section in list(doctree.findall(nodes.section)):
        title = section[0].astext()
        if title == "Going deeper":
            parts = [part[0].astext() for part in section.children if isinstance(part, nodes.section)]
            fold(section, 1, None, f"{minutes[1]} minutes more: {' · '.join(parts)}", "deeper")
        elif title == RECALL and isinstance(section.parent.parent, nodes.document):  # not the answers
            fold(section, 1, None, "Three questions from earlier lessons", "recall")
        elif title in ("Questions", "Answers"):
            code = next((i for i, node in enumerate(section.children) if is_code(node)), None)
            if code is not None:
                fold(section, code, None, CODE[title], "code")
            if title == "Answers":
                fold(section, 1, code, "Show the answers", "answers")
