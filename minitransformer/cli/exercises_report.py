"""What the checker has found, for a reader: plain text, with colour on a terminal."""

import os
import sys
import textwrap

WIDTH = 110
COLOURS = {"green": "32", "red": "31", "yellow": "33", "grey": "90"}


def paint(text, colour):
    """`text` in a colour, where the output is a terminal that has some."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def print_findings(exercise, findings, printed=""):
    """One paragraph for each function of the exercise."""
    for finding in findings:
        print(f"{exercise.lesson}  {finding.function:<28} {summary(finding)}")
        for clue in finding.clues:
            print_indented(clue)
        for name, question in finding.mistakes:
            print_indented(paint(f"= {name}", "yellow"))
            print_indented(f"-> {question}")
    if printed.strip():
        print("    your file printed:")
        print(textwrap.indent(printed.rstrip(), "    | "))
    if any(finding.status != "passed" for finding in findings):
        print_indented(paint(f"see {exercise.see}; for a hint: minitransformer hint {exercise.name}", "grey"))


def summary(finding):
    """What became of each output."""
    if finding.status == "open":
        return paint("not written yet", "yellow")
    parts = [
        paint(f"{name} WRONG", "red") if name in finding.wrong else f"{name} ok ({error:.0e})"
        for name, error in finding.outputs.items()
    ]
    if finding.status == "passed":
        parts.append(paint("passed", "green"))
    return "   ".join(parts) or paint("WRONG", "red")


def print_indented(text):
    """`text`, wrapped and indented."""
    print(textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="       "))
