"""On a lesson's page the reader answers first: fields for guesses and for lines, and a gate before what answers them.

A cell of a lesson asks with `guess = ...  # what`, or `name = ...  # your line: from what`. The answer is what a later
cell measures, `lesson.compare(what, guess, measured)`, or the prose that follows. folds.py folds what follows a gate.
Fields are hidden until docs/theme/static/asking.js shows them: without scripts, a fold is opened by hand.

A line for one of the explorer's arrays is written as the explorer writes formulas, and its engine judges it.
"""

import html
import json
import re
from math import prod
from typing import Any, NamedTuple

from .explorer import shapes
from .percent import Cell

GUESS = re.compile(r"^(guess\w*) = \.\.\.  # (.+)$", flags=re.MULTILINE)
LINE = re.compile(r"^(\w+) = \.\.\.  # your line(.*)$", flags=re.MULTILINE)
COMPARED = re.compile(r"lesson\.compare\(\s*f?\"[^\"]*\",\s*(\w+)")
MEASURED = re.compile(
    r"^  (\S(?:.|\n {6})*?):\s+([-\d,.e+]+)\s+\(you\s+have\s+not\s+guessed\)\n?", flags=re.MULTILINE
)  # what, and how much
UNWRITTEN = re.compile(r"^(?:  your \w+|station \d+ of \d+, .*): not written yet\n?", flags=re.MULTILINE)
GATE = '<div class="gate">'  # how the HTML begins after which the section is folded


HOW = "Written for one entry: a name has its usual indices, Σ over d is sum[d](…), and √ is sqrt(…)."


class Line(NamedTuple):
    """How a lesson's line is written for the explorer: `before`, the reader's part, `after`."""

    cells: str  # the explorer's numbers that belong to the lesson's variable: "cross.s[0,1]"
    before: str
    after: str = ""
    times: int = 1  # the lesson's numbers over the explorer's
    note: str = ""  # about names that the lesson does not have


LINES = {
    "02.dW_1": Line("decoder.ffn.dW_1", "dW_1 = "),
    "02.gated": Line("decoder.ffn.da", "da = ", note="1[a > 0] is 1 where a is positive, and 0 elsewhere."),
    "03.dz_row": Line(
        "output.dz[1]",
        "dz = share * (",
        ")",
        times=5,
        note="p_star is what the row wants. share is 1/N, because L is the mean of the N = 5 rows.",
    ),
    "04.dE_output": Line(
        "dE",
        "dE = ",
        " + sum[t: TARGET_IDS[t] == w](DE_TARGET[t,c]) + sum[i: SOURCE_IDS[i] == w](DE_SOURCE[i,c])",
        note="y and dz are called Y and DZ. After your part come the other two uses of E.",
    ),
    "05.s_row": Line("cross.s[0,1]", "s = "),
    "06.ds_row": Line("cross.ds[0,1]", "ds = "),
    "07.row_weights": Line(
        "decoder.self.p[1,1]", "p = ", note="1[allowed[t,i] == 1] is 1 where row t may look at key i, and 0 elsewhere."
    ),
    "10.through_sigma": Line("decoder.norm3.dx[1]", "dx = (dx_hat - dx_hat_mean) / sigma + (", ")"),
    "11.dx_of_x": Line("decoder.norm1.dy", "dy = ", note="SKIP_DY is dsum, and DY is through."),
    "12.dM": Line("cross.dM", "dM = ", note="Every head has its own dk and dv. W_k means W_k[c,h*D+d]."),
}


def start_and_count(cells: str) -> tuple[int, int]:
    """Where the numbers are in the array, row by row: "cross.s[0,1]" -> (4, 4)."""
    name, _, index = cells.partition("[")
    place = [int(number) for number in index.rstrip("]").split(",") if number]
    shape = shapes()[name]
    lengths = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return sum(i * length for i, length in zip(place, lengths, strict=False)), prod(shape[len(place) :])


def line_for_page(key: str, hand: dict[str, Any]) -> str:
    """What asking.js needs to judge a line, with what is right and what known mistakes give: JSON for an attribute."""
    line = LINES[key]
    place, _, symbol = line.cells.partition("[")[0].rpartition(".")
    start, count = start_and_count(line.cells)
    found = {**line._asdict(), **hand, "place": place, "symbol": symbol, "start": start, "count": count}
    return html.escape(json.dumps(found, ensure_ascii=False))


def field(key: str, label: str, kind: str, at: str = "asked", line: str = "") -> str:
    """A form with one field, for a "guess", for "words" or for a "line"; `at` keeps two fields for one guess apart."""
    name = f"{key.replace('.', '-')}-{at}"
    known = LINES[key] if line else Line("", "")
    before, after = (
        f"<code>{html.escape(text.strip())}</code> " if text else "" for text in (known.before, known.after)
    )
    note = f'<p class="note">{HOW} {html.escape(known.note)}</p>' if line else ""
    data = f' data-line="{line}"' if line else ""
    return (
        f'<form class="ask {kind}" data-key="{key}"{data} hidden><label for="{name}">{label}</label>'
        f'<div class="typed">{before}<input id="{name}" autocomplete="off" autocapitalize="off" spellcheck="false" '
        f'aria-describedby="{name}-said"> {after}<button>{"Guess" if kind == "guess" else "Check"}</button></div>'
        f'<div class="said" id="{name}-said" role="status"></div>{note}</form>'
    )


def guess_fields(number: str, cell: Cell) -> str:
    """A field for each guess that a cell asks for."""
    asked = GUESS.findall(cell.source)
    return "".join(field(f"{number}.{name}", f"Your guess: {html.escape(what)}", "guess") for name, what in asked)


def line_field(number: str, name: str, what: str, hands: dict[str, Any]) -> str:
    """A field for a line; if it isn't one of the explorer's, the reader compares it with the answer."""
    key, label = f"{number}.{name}", f"Your line for <code>{name}</code>{html.escape(what)}"
    if key in LINES and name in hands:
        return field(key, label, "line", line=line_for_page(key, hands[name]))
    return field(key, label, "words")


def comparisons(number: str, cell: Cell, printed: str) -> list[tuple[str, str, str]]:
    """(key, what, measured number) of each guess that a cell compares."""
    found = zip(COMPARED.findall(cell.source), MEASURED.findall(printed), strict=False)  # none if it is out of date
    return [(f"{number}.{name}", html.escape(" ".join(what.split())), value) for name, (what, value) in found]


def gate(number: str, cell: Cell, printed: str, hands: dict[str, Any]) -> str:
    """A field for each line that a cell asks for and each guess that it compares, or "" if there is none."""
    asked = [line_field(number, name, what, hands) for name, what in LINE.findall(cell.source)]
    guessed = comparisons(number, cell, printed)
    asked += [field(key, f"Your guess: {what}", "guess", f"answered-{cell.line}") for key, what, _ in guessed]
    return f"{GATE}{''.join(asked)}</div>" if asked else ""


def measured(number: str, cell: Cell, printed: str) -> str:
    """The measured numbers that a cell compares with guesses, for the first lines of the fold."""
    return "".join(
        f'<p class="measured" data-key="{key}" data-value="{value.replace(",", "")}">'
        f"{what}: <strong>{value}</strong> <span></span></p>"
        for key, what, value in comparisons(number, cell, printed)
    )


def rest(printed: str) -> str:
    """What a cell printed, without what the fields say instead."""
    return UNWRITTEN.sub("", MEASURED.sub("", printed)).strip("\n")
