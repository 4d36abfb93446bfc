"""Files as learners hand them in: the exercise's file, with an answer after it that replaces the stubs.

The solutions are in lessons/exercises; styles/NAME__loops.py and the like are further right answers.
"""

from pathlib import Path

from minitransformer.exercises import find_exercises

HERE = Path(__file__).parent
EXERCISES = find_exercises()


def style_files(exercise):
    """The files of all further ways to write it."""
    return sorted((HERE / "styles").glob(f"{exercise.name}__*.py"))


def hand_in(exercise, text, folder):
    """Write the exercise's file with `text` after it into `folder` -> its path."""
    path = folder / f"{exercise.name}.py"
    path.write_text(exercise.path.read_text("utf-8") + "\n\n" + text, "utf-8")
    return path
