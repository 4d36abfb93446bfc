"""`minitransformer hint`: show the next hint."""

import argparse
from typing import Any

from minitransformer.exercises.options import NAMES, add_workshop_arguments, chosen, say_which
from minitransformer.system.terminal import wrap

DESCRIPTION = """\
Show the next of three hints for each exercise: first a question to ask yourself, then what is missing, then the shapes
in the formula. Each call shows one more hint:

  minitransformer hint                           for the next open exercise
  minitransformer hint 06                        for the exercises of lesson 06 that you have not passed
  minitransformer hint 06_attention_backward
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser, f"{NAMES} (default: the next open exercise)")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Show the hints seen so far and the next one, for each exercise that is not passed yet (or for all)."""
    if arguments.exercise == "all":
        raise ValueError("a hint is for a lesson or an exercise, such as hint 06: all is not allowed")
    exercises, workshop = chosen(arguments)
    say_which(arguments, exercises)
    unsolved = [exercise for exercise in exercises if workshop.state(exercise) != "passed"]
    rows = {}
    for exercise in unsolved or exercises:
        count = min(workshop.noted(exercise.name, "hints", 0) + 1, len(exercise.hints))
        workshop.note(exercise.name, hints=count)
        print(wrap(f"{exercise.about()[0]}, {count} of {len(exercise.hints)} hints", f"{exercise.lesson}  ", "    "))
        for number, hint in enumerate(exercise.hints[:count], start=1):
            print(wrap(f"{number}. {hint}", "    ", "       "))
        rows[exercise.name] = list(exercise.hints[:count])
    return 0, rows
