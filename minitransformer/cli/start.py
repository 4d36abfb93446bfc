"""`minitransformer start`: a copy of an exercise to work on."""

import argparse
import json

from minitransformer.exercises.options import add_workshop_arguments, chosen

DESCRIPTION = """\
Copy the exercises of a lesson to your folder my_exercises, which git ignores. Files that are already there are not
overwritten:

  minitransformer start 06
  minitransformer start 06_attention_backward

Write your solution in the copy. These commands help:

  minitransformer check 06          check your solution, and name your mistakes
  minitransformer hint 06           show the next hint
  minitransformer progress          list all exercises with your progress
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Copy the files that are not there yet, and print their paths."""
    exercises, workshop = chosen(arguments)
    rows = []
    for exercise in exercises:
        path, new = workshop.start(exercise)
        title, difficulty, minutes = exercise.about()
        print(f"{exercise.lesson}  {title}, difficulty {difficulty} of 5, about {minutes} minutes")
        print(f"    {'write your solution in' if new else 'already started:'} {path}")
        rows.append({"exercise": exercise.name, "path": str(path), "new": new})
    print(f"\nCheck your solution with: minitransformer check {arguments.exercise}")
    if arguments.json:
        print(json.dumps(rows))
    return 0
