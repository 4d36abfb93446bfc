"""`minitransformer solution`: show the solution to those who have passed or give up."""

import argparse
from typing import Any

from minitransformer.exercises.options import NAMES, add_workshop_arguments, chosen

DESCRIPTION = """\
Show our solution to an exercise that you have passed. With --give-up, show it in any case:

  minitransformer solution 06
  minitransformer solution 06 --give-up
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)
    parser.add_argument("exercise", metavar="EXERCISE", help=NAMES)
    parser.add_argument("--give-up", action="store_true", help="show it even if you have not passed, and record that")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Print the file of each exercise that may be seen -> 1 if none may."""
    if arguments.exercise == "all":
        raise ValueError("name a lesson or an exercise, such as solution 06: all is not allowed")
    exercises, workshop = chosen(arguments)
    shown = {}
    for exercise in exercises:
        if workshop.state(exercise) == "not started" and not arguments.give_up:
            print(f"{exercise.name}: not started yet. Try it first: minitransformer start {exercise.name}")
        elif workshop.state(exercise) == "started" and not arguments.give_up:
            print(
                f"{exercise.name}: not passed yet. Get a hint (minitransformer hint {exercise.name}) or use --give-up"
            )
        else:
            if workshop.state(exercise) != "passed":
                workshop.note(exercise.name, gave_up=True)
            shown[exercise.name] = exercise.solution.rstrip()
            print(f"{f'---- {exercise.name} ':-<80}\n{shown[exercise.name]}")
    return 0 if shown else 1, shown
