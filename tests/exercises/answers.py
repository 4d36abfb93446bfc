"""The right answers, which the checker does not have: each is put behind the exercise's file, where it replaces stubs.

solutions/NAME.py is how we would write it; styles/NAME__loops.py and the like are others ways to be right.
"""

from pathlib import Path

from minitransformer.exercises import find_exercises

HERE = Path(__file__).parent
EXERCISES = find_exercises()


def solution_text(exercise):
    """The right answer's text."""
    return (HERE / "solutions" / f"{exercise.name}.py").read_text("utf-8")


def style_files(exercise):
    """The files of all further ways to write it."""
    return sorted((HERE / "styles").glob(f"{exercise.name}__*.py"))


def hand_in(exercise, text, folder):
    """Write the exercise's file with `text` behind it into `folder` -> its path."""
    path = folder / f"{exercise.name}.py"
    path.write_text(exercise.path.read_text("utf-8") + "\n\n" + text, "utf-8")
    return path
