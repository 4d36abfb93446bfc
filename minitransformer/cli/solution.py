"""`minitransformer solution`: a right answer, for those who have one already or give up."""

import json

from minitransformer.cli.workshop_options import add_workshop_arguments, chosen
from minitransformer.curriculum import FOLDER

HELP = "show the right answer to an exercise that you have passed"
DESCRIPTION = """\
Show how we would have written it, after you have passed, or with --give-up:

  minitransformer solution 06
  minitransformer solution 06 --give-up
"""
SOLUTIONS = FOLDER.parent / "tests" / "exercises" / "solutions"  # the checker itself knows no right answer


def add_arguments(parser):
    """The command's own arguments."""
    add_workshop_arguments(parser)
    parser.add_argument("--give-up", action="store_true", help="show it although you have not passed, and note that")


def run(arguments):
    """Print the file of each exercise that may be seen -> 1 if none may."""
    exercises, workshop = chosen(arguments)
    shown = {}
    for exercise in exercises:
        if workshop.state(exercise) == "open" and not arguments.give_up:
            print(f"{exercise.name}: not begun yet. Try it first: minitransformer start {exercise.lesson}")
        elif workshop.state(exercise) == "begun" and not arguments.give_up:
            print(f"{exercise.name}: not passed yet. A hint: minitransformer hint {exercise.lesson}; or --give-up")
        else:
            if workshop.state(exercise) != "passed":
                workshop.note(exercise, gave_up=True)
            shown[exercise.name] = read_solution(exercise)
            print(f"{'-' * 4} {exercise.name} {'-' * 60}\n{shown[exercise.name]}")
    if arguments.json:
        print(json.dumps(shown, ensure_ascii=False))
    return 0 if shown else 1


def read_solution(exercise):
    """The text of the right answer; FileNotFoundError where the package came without its tests."""
    path = SOLUTIONS / f"{exercise.name}.py"
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: the solutions are in the tests of the project's checkout")
    return path.read_text("utf-8").rstrip()
