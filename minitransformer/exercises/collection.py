"""All exercises of the course: every folder of lessons/exercises."""

import difflib
import functools
import sys
from pathlib import PurePath

from minitransformer.course import EXERCISES
from minitransformer.exercises.exercise import Exercise, load
from minitransformer.system.files import kind_of


@functools.cache
def find_exercises() -> list[Exercise]:
    """All exercises, in the order of the lessons, the easier ones first. Raises FileNotFoundError if missing."""
    folders = EXERCISES.iterdir() if kind_of(EXERCISES) else ()
    exercises = [_read(folder.name) for folder in folders if kind_of(folder / "mistakes.py")]
    if not exercises:
        raise FileNotFoundError(f"there are no exercises in {EXERCISES}: install the package again")
    return sorted(exercises, key=lambda exercise: (exercise.lesson, exercise.about()[1], exercise.name))


@functools.cache
def _read(name: str) -> Exercise:
    path = EXERCISES / name / "mistakes.py"
    if str(EXERCISES) not in sys.path:
        sys.path.insert(0, str(EXERCISES))  # where exercise_problems is, which mistakes.py imports
    exercise = load(path, f"mistakes_{name}").EXERCISE
    if exercise.name != name:
        raise ValueError(f"{path} describes the exercise {exercise.name}, not {name}")
    return exercise


def find_exercise(name: str) -> Exercise:
    """The exercise whose folder is called `name`; ValueError if there is none."""
    if kind_of(EXERCISES / name / "mistakes.py"):
        return _read(name)  # without reading all others
    (exercise,) = choose_exercises(name)
    return exercise


def choose_exercises(text: str) -> list[Exercise]:
    """The exercises that `text` names, at least one.

    A lesson's number ("06", "6") names the exercises of that lesson, "all" names every exercise. Anything else is a
    name ("06_attention_backward"), the beginning of one, with or without the number ("06_att", "attention_b"), or the
    path of a learner's file. Raises ValueError, with similar names or the lessons with exercises, if nothing matches.
    """
    exercises = find_exercises()
    name = PurePath(text).name.removesuffix(".py")
    if name == "all":
        return exercises
    if name.isdecimal():
        chosen = [exercise for exercise in exercises if exercise.lesson.lstrip("0") == name.lstrip("0")]
    else:
        chosen = (
            [exercise for exercise in exercises if exercise.name == name]
            or [exercise for exercise in exercises if name and exercise.name.startswith(name)]
            or [exercise for exercise in exercises if name and exercise.name[3:].startswith(name)]
        )
    if not chosen:
        raise ValueError(f"there is no exercise {text}; {_suggest(name, exercises)}")
    return chosen


def _suggest(name: str, exercises: list[Exercise]) -> str:
    names = {alias: exercise.name for exercise in exercises for alias in (exercise.name, exercise.name[3:])}
    similar = {names[alias]: None for alias in difflib.get_close_matches(name, names)}
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    return f"lessons {exercises[0].lesson} to {exercises[-1].lesson} have exercises"
