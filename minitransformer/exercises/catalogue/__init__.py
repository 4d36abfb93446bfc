"""All exercises, a file for each lesson: problems, wrong answers and hints, but no right answers."""

import importlib
import pkgutil


def find_exercises():
    """All exercises in order -> [Exercise]."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith("lesson_"))
    return [exercise for name in names for exercise in importlib.import_module(f"{__name__}.{name}").EXERCISES]


def find_exercise(name):
    """The exercise whose file is called `name`; ValueError for another."""
    (exercise,) = choose_exercises(name)
    return exercise


def choose_exercises(text):
    """The exercises of a lesson ("06", "6"), or the one of a name ("06_attention_backward") -> [Exercise].

    Raises ValueError, saying what there is, if nothing is called so.
    """
    exercises = find_exercises()
    chosen = [
        exercise for exercise in exercises if text in (exercise.name, exercise.lesson, exercise.lesson.lstrip("0"))
    ]
    if not chosen:
        lessons = sorted({exercise.lesson for exercise in exercises})
        raise ValueError(f"there is no exercise {text}: there are some for the lessons {', '.join(lessons)}")
    return chosen
