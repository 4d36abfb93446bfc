"""`minitransformer start`: a copy of an exercise to work on."""

import argparse
import json

from minitransformer.exercises.options import add_workshop_arguments, chosen

HELP = "begin an exercise: make your own copy of its file"
DESCRIPTION = """\
Copy the exercises of a lesson into your folder, my_exercises, where git does not look and nothing is overwritten:

  minitransformer start 06
  minitransformer check 06          says what is right, and which mistake was made
  minitransformer hint 06           one hint after the other
  minitransformer progress          all exercises, with your progress
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Copy what is not there yet, say where."""
    exercises, workshop = chosen(arguments)
    rows = []
    for exercise in exercises:
        path, new = workshop.start(exercise)
        title, difficulty, minutes = exercise.about()
        print(f"{exercise.lesson}  {title}, difficulty {difficulty} of 5, about {minutes} minutes")
        print(f"    {'write in' if new else 'you have begun it already:'} {path}")
        rows.append({"exercise": exercise.name, "path": str(path), "new": new})
    print(f"\nThen: minitransformer check {arguments.exercise}")
    if arguments.json:
        print(json.dumps(rows))
    return 0
