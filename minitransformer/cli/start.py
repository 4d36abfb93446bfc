"""`minitransformer start`: a copy of an exercise to work on."""

import argparse
from typing import Any

from minitransformer.exercises.options import NAMES, add_workshop_arguments, chosen, say_which
from minitransformer.system.terminal import shown, wrap

DESCRIPTION = """\
Copy exercises to your folder my_exercises. Files that are already there are not overwritten:

  minitransformer start                          the next open exercise
  minitransformer start 06                       all exercises of lesson 06
  minitransformer start 06_attention_backward

Write your solution in the copy. These commands help:

  minitransformer check 06          check your solution, and name your mistakes
  minitransformer hint 06           show the next hint
  minitransformer progress          how far you are
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser, f'{NAMES}, or "all" (default: the next open exercise)')


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Copy the files that are not there yet, and print their paths."""
    exercises, workshop = chosen(arguments)
    say_which(arguments, exercises)
    rows = []
    for exercise in exercises:
        path, new = workshop.start(exercise)
        title, difficulty, minutes = exercise.about()
        print(wrap(f"{title}, difficulty {difficulty} of 5, about {minutes} minutes", f"{exercise.lesson}  ", "    "))
        print(f"    {'write your solution in' if new else 'already started:'} {shown(path)}")
        rows.append({"exercise": exercise.name, "path": str(path), "new": new})
    print(f"\nCheck your solution with: minitransformer check {arguments.exercise or ''}".rstrip())
    if arguments.exercise is None and not rows[0]["new"]:
        print("To start another exercise, name it, as in: minitransformer start 06")
    return 0, rows
