"""Diagnoses as plain text, with color on a terminal."""

import os
import sys
import textwrap
from collections.abc import Sequence

from minitransformer.exercises.exercise import Exercise
from minitransformer.exercises.judging import Diagnosis
from minitransformer.system.terminal import wrap

# the console of older Windows shows the codes of colors as text
WITHOUT_TERM = "dumb" if sys.platform == "win32" and "WT_SESSION" not in os.environ else ""
COLOURS = {"green": "32", "red": "31", "yellow": "33", "grey": "90"}


def paint(text: str, colour: str) -> str:
    """`text` in a color, if the output is a terminal that shows colors."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", WITHOUT_TERM) == "dumb":
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def print_diagnoses(exercise: Exercise, diagnoses: Sequence[Diagnosis], printed: str = "") -> None:
    """One paragraph for each function of the exercise, and what the learner's file `printed`."""
    for diagnosis in diagnoses:
        print(wrap(summary(diagnosis), f"{exercise.lesson}  {diagnosis.function:<28} ", " " * 8))
        for clue in diagnosis.clues:
            print_indented(clue)
        for name, question in diagnosis.mistakes:
            print_indented(paint(f"= {name}", "yellow"))
            print_indented(f"-> {question}")
    if printed.strip():
        print("    your file printed:")
        print(textwrap.indent(printed.rstrip(), "    | "))
    if any(diagnosis.status != "passed" for diagnosis in diagnoses):
        print_indented(paint(f"see {exercise.see}", "grey"))
        print_indented(paint(f"for a hint: minitransformer hint {exercise.name}", "grey"))


def summary(diagnosis: Diagnosis) -> str:
    """Each output with its error, or WRONG."""
    if diagnosis.status == "open":
        return paint("not written yet", "yellow")
    parts = [
        paint(f"{name} WRONG", "red") if name in diagnosis.wrong else f"{name} ok ({error:.0e})"
        for name, error in diagnosis.outputs.items()
    ]
    if diagnosis.status == "passed":
        parts.append(paint("passed", "green"))
    return "   ".join(parts) or paint("WRONG", "red")


def print_indented(text: str) -> None:
    """`text`, wrapped and indented."""
    print(wrap(text, "    ", "       "))
