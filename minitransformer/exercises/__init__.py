"""The checker of the exercises, which says which mistake was made. The exercises are in lessons/exercises."""

from minitransformer.exercises.collection import choose_exercises, find_exercise, find_exercises
from minitransformer.exercises.diagnose import diagnose
from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.judging import Diagnosis
from minitransformer.exercises.runner import check
from minitransformer.exercises.workshop import Workshop
