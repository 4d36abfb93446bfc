"""Exercises, and a checker that says which mistake was made."""

from minitransformer.exercises.catalogue import choose_exercises, find_exercise, find_exercises
from minitransformer.exercises.diagnose import Finding, diagnose
from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Task, backward_problem
from minitransformer.exercises.runner import check
from minitransformer.exercises.workshop import Workshop

__all__ = [
    "Exercise",
    "Finding",
    "Invariant",
    "Mistake",
    "Output",
    "Problem",
    "Task",
    "Workshop",
    "backward_problem",
    "check",
    "choose_exercises",
    "diagnose",
    "find_exercise",
    "find_exercises",
]
