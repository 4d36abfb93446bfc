"""The page of the exercises, made from their own files: a table, and for each what it asks, its hints, its source."""

import ast
import re
import textwrap

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from minitransformer.exercises import Exercise, find_exercises

from .folds import Fold
from .percent import LESSONS

UNBROKEN = "\u00a0"  # a space at which no line ends
TABLE = ("| exercise | you write | lesson | difficulty | time |", "| --- | --- | --- | --- | --- |")
HEADER = re.compile(r"^Difficulty (\d) of 5, (\d+) minutes\.")


def source_of(exercise: Exercise) -> str:
    """The file that the learner gets."""
    return (LESSONS / "exercises" / exercise.name / "exercise.py").read_text("utf-8")


def header_of(exercise: Exercise) -> tuple[str, list[str]]:
    """Its title and the paragraphs of its header, without the command."""
    title, *paragraphs = ast.get_docstring(ast.parse(source_of(exercise))).split("\n\n")
    title = title.partition(": ")[2].rstrip(".")
    kept = [text for text in paragraphs if not text.strip().startswith("minitransformer check")]
    return title[0].upper() + title[1:], kept


def functions_of(exercise: Exercise) -> str:
    """The names of what is to be written."""
    return ", ".join(f"`{task.function}`" for task in exercise.tasks)


def row(exercise: Exercise) -> str:
    """Its row of the table, in Markdown."""
    title, paragraphs = header_of(exercise)
    difficulty, minutes = HEADER.match(paragraphs[0]).groups()
    (lesson,) = LESSONS.glob(f"{exercise.lesson}_*.py")
    first = f"| [{title}](#{exercise.name}) | {functions_of(exercise)} | [{exercise.lesson}](/lessons/{lesson.name}) "
    return first + f"| {difficulty}~of~5 | {minutes}~min |".replace("~", UNBROKEN)


class ExercisePage(SphinxDirective):
    """All exercises, in the order of the lessons."""

    def run(self):
        """The table, then a section for each."""
        exercises = find_exercises()
        for exercise in exercises:
            for name in ("exercise.py", "mistakes.py"):
                self.env.note_dependency(str(LESSONS / "exercises" / exercise.name / name))
        table = [*TABLE, *map(row, exercises)]
        return [*self.parse_markdown(table), *map(self.section, exercises)]

    def parse_markdown(self, lines):
        """The nodes of some Markdown."""
        node = nodes.Element()
        self.state.nested_parse(StringList(lines, source=self.env.docname), self.content_offset, node)
        return node.children

    def section(self, exercise):
        """The part of the page on one exercise."""
        title, paragraphs = header_of(exercise)
        section = nodes.section(ids=[exercise.name], names=[exercise.name])
        section += nodes.title("", title)
        self.state.document.note_explicit_target(section)
        for text in paragraphs:
            if text.startswith("    "):
                section += nodes.literal_block("", textwrap.dedent(text), language="formula")
            else:
                section += nodes.paragraph("", " ".join(text.split()))
        command = f"minitransformer start {exercise.name}\nminitransformer check {exercise.name}"
        section += nodes.literal_block("", command, language="sh")
        for i, hint in enumerate(exercise.hints, 1):
            section += Fold("", nodes.paragraph("", hint), summary=f"Hint {i} of {len(exercise.hints)}", kind="hint")
        code = nodes.literal_block("", source_of(exercise), language="python")
        section += Fold("", code, summary="The file that you get", kind="source")
        return section


def of_lesson(number: str) -> list[tuple[str, str]]:
    """(name, title) of the exercises of a lesson."""
    return [(found.name, header_of(found)[0]) for found in find_exercises() if found.lesson == number]
