"""The options that the commands on exercises share: the exercise, and the learner's folder."""

import argparse
from pathlib import Path

from minitransformer.exercises.collection import choose_exercises, find_exercises
from minitransformer.exercises.exercise import Exercise
from minitransformer.exercises.workshop import Workshop

NAMES = "a lesson (06), an exercise (06_attention_backward) or the beginning of its name"


def add_workshop_arguments(parser: argparse.ArgumentParser, exercise: str = "") -> None:
    """Add --folder, and the argument EXERCISE, an optional one, with this help."""
    if exercise:
        parser.add_argument("exercise", metavar="EXERCISE", nargs="?", help=exercise)
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="folder of your own files (default my_exercises)")


def chosen(arguments: argparse.Namespace) -> tuple[list[Exercise], Workshop]:
    """The exercises that were asked for, by default the next open one, and the workshop.

    Raises ValueError if no exercise is open.
    """
    workshop = Workshop(arguments.folder)
    if arguments.exercise is not None:
        return choose_exercises(arguments.exercise), workshop
    exercise = workshop.next_open(find_exercises())
    if exercise is None:
        raise ValueError("no exercise is open any more: name one, such as 06_attention_backward")
    return [exercise], workshop


def say_which(arguments: argparse.Namespace, exercises: list[Exercise]) -> None:
    """Print the name of the next open exercise, if none was asked for."""
    if arguments.exercise is None:
        print(f"the next open exercise is {exercises[0].name}\n", flush=True)
