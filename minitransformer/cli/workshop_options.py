"""What the commands on exercises share: which exercise, and which folder of the learner's."""

from pathlib import Path

from minitransformer.exercises.catalogue import choose_exercises
from minitransformer.exercises.workshop import MINE, Workshop


def add_workshop_arguments(parser, what="lesson's number, or an exercise's name"):
    """The exercise, unless `what` is None, and the folder."""
    if what:
        parser.add_argument("exercise", metavar="NN", help=what)
    parser.add_argument("--folder", type=Path, default=MINE, help="of your own files (default my_exercises)")


def chosen(arguments):
    """The exercises that were asked for, and the workshop -> ([Exercise], Workshop)."""
    return choose_exercises(arguments.exercise), Workshop(arguments.folder)
