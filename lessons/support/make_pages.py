"""Write the table in README.md and all of CLAIMS.md from the lessons' headers and the records of their full runs.

    minitransformer lesson all && python lessons/support/make_pages.py

It stops if a lesson has not been run in full, or took longer than its header says. The table shows the committed
figures in plots/, which `python plots/make.py` writes.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minitransformer.course import LessonInfo, find_lessons, read_record
from minitransformer.system.files import atomic_write

LESSONS = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- table: written by make_pages.py -->\n", "<!-- end of table -->\n"
PARTS = {  # number of the first lesson of each part: its title, and what it is about
    "00": (
        "Gradients you can trust",
        "What you will have built, and the tool and the rule on which the rest stands.",
    ),
    "05": ("Attention", "Why one token looks at another, and what it learns from it."),
    "09": ("The block", "Positions, norms and residual paths, and then the whole machine."),
    "13": ("Training and using it", "The step, the loss of a whole answer, ten bugs, and how to write."),
    "17": ("Before and after the paper", "What attention replaced, what it reads, and what has changed since."),
    "20": ("Looking inside", "What a trained model does with what it reads, and what its maps are worth."),
    "22": ("Cost", "Attention in less memory: exactly, or by forgetting."),
    "24": ("Training, closely", "How far one step may go, and one step on two machines."),
    "26": ("On your own", "A Transformer from an empty file, and one that somebody else trained."),
}
CLAIMS = """\
# Claims we tested

What popular texts say about the Transformer, where they say it, and what we measured. Each row comes from the lesson in
its last column, which repeats the measurement whenever it runs: `minitransformer lesson 05` those of lesson 05.
`make_pages.py` writes this page from the lessons' results.

| claim | said in | verdict | what we found | lesson |
| --- | --- | --- | --- | --- |
"""


def cell(text: str) -> str:
    """`text` on one line and escaped, for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(lessons: Sequence[LessonInfo], records: Mapping[str, Any]) -> str:
    """One row per lesson: its figure, its question, its times. Each part of the course has a table of its own."""
    rows = []
    for lesson in lessons:
        if lesson.number in PARTS:
            rows += part(*PARTS[lesson.number])
        record = records[lesson.name]
        picture = f'<img src="../plots/{lesson.name}.png" width="220" alt="the figure of lesson {lesson.number}">'
        title = f"**[{lesson.number}]({lesson.name}.py)** {cell(lesson.title)}, difficulty {lesson.difficulty} of 5"
        read = f"{lesson.minutes} min + {lesson.deeper_minutes} min, with a pencil {lesson.pencil_minutes} min"
        run = f"{lesson.seconds} s" + (", long" if lesson.long else "")
        measured = f"{len(record['checks'])} checks in {record['seconds']:.0f} s"
        rows.append(f"| {picture} | {title} | {cell(lesson.question)} | {read} | {run} | {measured} |")
    return "\n".join(rows) + "\n"


def part(title: str, about: str) -> list[str]:
    """The lines above the rows of a part: its heading, what it is about, and the head of its table."""
    head = ["| figure | lesson | question | read | run | measured |", "| --- | --- | --- | --- | --- | --- |"]
    return ["", f"### {title}", "", about, "", *head]


def claims(lessons: Sequence[LessonInfo], records: Mapping[str, Any]) -> str:
    """The page CLAIMS.md: one row per claim."""
    rows = []
    for lesson in lessons:
        link = f"[{lesson.number}]({lesson.name}.py)"
        for claim in records[lesson.name]["claims"]:
            said, found = cell(claim["said"]), cell(claim["found"])
            rows.append(f"| {cell(claim['claim'])} | {said} | {claim['verdict']} | {found} | {link} |")
    return CLAIMS + "\n".join(rows) + "\n"


def with_table(page: str, rows: str) -> str:
    """`page` with `rows` between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError("README.md lacks the marks around its table")
    return before + BEGIN + rows + "\n" + END + after


def main() -> int:
    """Write both pages and return the exit status."""
    lessons = find_lessons(LESSONS)
    records = {lesson.name: read_record(lesson) for lesson in lessons}
    for lesson in lessons:
        if records[lesson.name] is None:
            print(f"run lesson {lesson.number} in full first: minitransformer lesson {lesson.number}", file=sys.stderr)
            return 1
        if records[lesson.name]["seconds"] > lesson.seconds:
            took = records[lesson.name]["seconds"]
            print(f"lesson {lesson.number} says {lesson.seconds} s, but took {took:.0f} s", file=sys.stderr)
            return 1
    readme = LESSONS / "README.md"
    pages = {readme: with_table(readme.read_text("utf-8"), table(lessons, records))}
    pages[LESSONS / "CLAIMS.md"] = claims(lessons, records)
    for path, text in pages.items():
        with atomic_write(path) as partial:
            partial.write_text(text, "utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
