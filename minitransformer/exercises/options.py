"""The options that the commands on exercises share: the exercise, and the learner's folder."""

import argparse
from pathlib import Path

from minitransformer.exercises.collection import choose_exercises
from minitransformer.exercises.exercise import Exercise
from minitransformer.exercises.workshop import MINE, Workshop


def add_workshop_arguments(parser: argparse.ArgumentParser, exercise: bool = True) -> None:
    """Add --folder, and with `exercise` the argument that names an exercise."""
    if exercise:
        parser.add_argument("exercise", metavar="NN", help="number of a lesson (06), or name of an exercise")
    parser.add_argument(
        "--folder", type=Path, default=MINE, metavar="FOLDER", help="folder of your own files (default my_exercises)"
    )


def chosen(arguments: argparse.Namespace) -> tuple[list[Exercise], Workshop]:
    """The exercises that were asked for, and the workshop."""
    return choose_exercises(arguments.exercise), Workshop(arguments.folder)
