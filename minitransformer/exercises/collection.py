"""All exercises of the course: every folder of lessons/exercises."""

import functools

from minitransformer.course import EXERCISES
from minitransformer.exercises.exercise import Exercise, load


@functools.cache
def find_exercises() -> list[Exercise]:
    """All exercises, in the order of the lessons, the easier ones first. Raises FileNotFoundError if missing."""
    exercises = [_read(path.parent.name) for path in EXERCISES.glob("*/mistakes.py")]
    if not exercises:
        raise FileNotFoundError(f"there are no exercises in {EXERCISES}: install the package again")
    return sorted(exercises, key=lambda exercise: (exercise.lesson, exercise.about()[1], exercise.name))


@functools.cache
def _read(name: str) -> Exercise:
    path = EXERCISES / name / "mistakes.py"
    exercise = load(path, f"mistakes_{name}").EXERCISE
    if exercise.name != name:
        raise ValueError(f"{path} describes the exercise {exercise.name}, not {name}")
    return exercise


def find_exercise(name: str) -> Exercise:
    """The exercise whose folder is called `name`; ValueError if there is none."""
    if (EXERCISES / name / "mistakes.py").is_file():
        return _read(name)  # without reading all others
    (exercise,) = choose_exercises(name)
    return exercise


def choose_exercises(text: str) -> list[Exercise]:
    """The exercises of a lesson ("06", "6"), or the one called `text` ("06_attention_backward").

    Raises ValueError, which lists the lessons with exercises, if `text` matches no exercise.
    """
    exercises = find_exercises()
    chosen = [
        exercise for exercise in exercises if text in (exercise.name, exercise.lesson, exercise.lesson.lstrip("0"))
    ]
    if not chosen:
        lessons = sorted({exercise.lesson for exercise in exercises})
        raise ValueError(f"there is no exercise {text}; lessons with exercises: {', '.join(lessons)}")
    return chosen
