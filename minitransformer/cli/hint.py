"""`minitransformer hint`: show the next hint."""

import argparse
import json

from minitransformer.exercises.options import add_workshop_arguments, chosen
from minitransformer.terminal import wrap

DESCRIPTION = """\
Show the next of three hints for each exercise: first a question to ask yourself, then what is missing, then the shapes
in the formula. Each call shows one more hint:

  minitransformer hint 06
  minitransformer hint 06_attention_backward
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the hints seen so far and the next, of each exercise that is not passed yet (or of all)."""
    exercises, workshop = chosen(arguments)
    unsolved = [exercise for exercise in exercises if workshop.state(exercise) != "passed"]
    rows = {}
    for exercise in unsolved or exercises:
        count = min(workshop.noted(exercise, "hints", 0) + 1, len(exercise.hints))
        workshop.note(exercise, hints=count)
        print(f"{exercise.lesson}  {exercise.about()[0]}, {count} of {len(exercise.hints)} hints")
        for number, hint in enumerate(exercise.hints[:count], start=1):
            print(wrap(f"{number}. {hint}", "    ", "       "))
        rows[exercise.name] = list(exercise.hints[:count])
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False))
    return 0
