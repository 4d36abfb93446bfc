"""What a function is tried on: sizes of which none is constant, float32 and int32, and the kinds of what it returns."""

import numpy as np
import pytest

from minitransformer.exercises import diagnose, find_exercise
from minitransformer.exercises.cases import cases_of, make_problem
from minitransformer.exercises.exercise import load
from tests.exercises.answers import EXERCISES, hand_in
from tests.tiers import some

TASKS = [(exercise, task) for exercise in EXERCISES for task in exercise.tasks]
every_task = pytest.mark.parametrize(
    ("exercise", "task"), TASKS, ids=[f"{exercise.name}-{task.function}" for exercise, task in TASKS]
)
NEVER_1 = {
    ("sinusoids", "C"): "it is even",
    ("turn", "C"): "it is even",
    ("rotate_backward", "D"): "it is even",
    ("rms_norm_backward", "C"): "a token of one feature is its own root mean square, so its gradient is nearly 0",
    ("block_backward", "C"): "as for rms_norm_backward",
    ("block_backward", "D"): "it is even",
    ("greedy", "V"): "there are three special tokens",
    ("masked_loss", "V"): "there are three special tokens",
    ("beam_search", "V"): "eos is token 2",
    ("leak_test", "vocab_size"): "a single token cannot be changed",
    ("verdicts", "T"): "few tokens have too few orders",
    ("lanczos", "size"): "with one direction, nothing is left of its product",
    ("without_key", "S"): "one key must be left",
    ("costs", "V"): "token 0 is padding",
    ("slopes", "V"): "token 0 is padding",
    ("another_map", "S"): "a single weight cannot move",
    ("merge_states", "S"): "each of the two readers has seen a key",
}
ONLY_FLOAT64 = {
    "central_difference": "its step is made for float64",
    "complex_step": "its step is made for float64",
    "leak_test": "its arrays are the learner's own",
    "causal_mask": "it takes no array",
    "shift_head": "it takes no array",
    "reverse_head": "it takes no array",
    "sinusoids": "it takes no array",
    "turn": "it takes no array",
    "first_seen_each": "it takes no array",
    "verdicts": "rounding in float32 is no news about positions",
    "continue_word": "its matrices are the learner's own",
    "count_directions": "rounding makes values independent",
    "another_map": "rounding decides which weight is 0 first",
}


@every_task
def test_no_size_is_the_same_in_all_problems_and_none_is_twice_in_the_first(exercise, task):
    assert len(task.sizes) >= 3
    first, second = task.sizes[:2]
    assert len(set(first.values())) == len(first), "a wrong axis could go unseen"
    for letter in first:
        lengths = {sizes[letter] for sizes in task.sizes}
        assert first[letter] != second[letter]
        assert (1 in lengths) == ((task.function, letter) not in NEVER_1), letter


@every_task
def test_every_function_of_arrays_is_tried_on_float32_or_int32(exercise, task):
    assert task.float32 == (task.function not in ONLY_FLOAT64)
    if task.float32:
        given, case = load(exercise.path), cases_of(task)[-1]
        assert case.single
        dtypes = dtypes_in(make_problem(task, given, case).args)
        assert dtypes & {"float32", "int32", "function"}
        assert not dtypes & {"float64", "int64"}


def dtypes_in(value):
    """The dtypes of all arrays, and "function", in nested tuples, lists and dictionaries."""
    if isinstance(value, tuple | list | dict):
        items = value.values() if isinstance(value, dict) else value
        return set().union(*(dtypes_in(item) for item in items))
    if isinstance(value, np.ndarray | np.generic):
        return {value.dtype.name}
    return {"function"} if callable(value) else set()


def answers_with(exercise, task, change, folder):
    """The diagnosis of the solution with each of its outputs x changed to the expression `change`."""
    several = len(task.outputs) > 1
    text = f"""{exercise.solution}

right_{task.function} = {task.function}


def {task.function}(*args):
    outputs = right_{task.function}(*args)
    return {f"tuple({change} for x in outputs)" if several else f"(lambda x: {change})(outputs)"}
"""
    diagnoses = diagnose(exercise, hand_in(exercise, text, folder))
    return next(diagnosis for diagnosis in diagnoses if diagnosis.function == task.function)


KINDS = {"bool": ("np.multiply(x, 1)", "np.multiply(x, 1.0)"), "int": ("np.multiply(x, 1.0)",)}
TYPED = [
    (exercise, task, change)
    for exercise, task in TASKS
    for output in task.outputs[-1:]
    for change in (*KINDS.get(output.kind, ()), *(["np.asarray(x).tolist()"] if output.kind != "float" else []))
    if not (output.sequence and "tolist" in change)
]


@pytest.mark.parametrize(
    ("exercise", "task", "change"), TYPED, ids=[f"{task.function}-{change}" for _, task, change in TYPED]
)
def test_masks_must_be_arrays_of_booleans_and_ids_arrays_of_integers(exercise, task, change, tmp_path):
    if task.function == "beam_search":
        change = "x if np.ndim(x) == 0 else " + change  # its score is a number
    diagnosis = answers_with(exercise, task, change, tmp_path)
    assert diagnosis.status == "wrong"
    assert "but should" in diagnosis.clues[0]
    assert diagnosis.mistakes == ()
    assert "this is not one of the known mistakes" not in diagnosis.clues


NEAR = ("shift_head", "reverse_head", "continue_word")  # near 0 and 1 is near enough
ROUNDED = [(e, t) for e, t in TASKS if all(output.kind == "float" for output in t.outputs) and t.function not in NEAR]


@pytest.mark.parametrize(("exercise", "task"), some(ROUNDED, 6))
def test_float32_on_the_way_is_refused_and_named(exercise, task, tmp_path):
    diagnosis = answers_with(exercise, task, "np.asarray(x, np.float32).astype(float)", tmp_path)
    assert diagnosis.status == "wrong"
    assert "Is there a float32 on the way" in diagnosis.clues[-1]
    for clue in diagnosis.clues[:-1]:
        yours, right = clue.split("yours ")[1].split(", right ")
        assert yours != right


WITH_ARRAYS = [(e, t) for e, t in ROUNDED if not any(output.sequence for output in t.outputs)]


@pytest.mark.parametrize(("exercise", "task"), some(WITH_ARRAYS, 6))
def test_another_rounding_passes_in_both_precisions(exercise, task, tmp_path):
    """As of a right answer that adds in another order."""
    diagnosis = answers_with(exercise, task, "x * (1 + 4 * np.finfo(np.asarray(x).dtype).eps)", tmp_path)
    assert (diagnosis.status, diagnosis.clues) == ("passed", ())


ATTENTION = find_exercise("06_attention_backward")


def attention_backward_with(line, folder):
    return answers_with(ATTENTION, ATTENTION.tasks[0], line, folder)


def test_wider_result_than_the_inputs_passes_with_a_remark(tmp_path):
    diagnosis = attention_backward_with("x.astype(np.float64)", tmp_path)
    assert diagnosis.status == "passed"
    (remark,) = diagnosis.clues
    assert remark.startswith("with float32 inputs, dq, dk, dv should be float32, too")


def test_half_precision_is_refused_for_float32_inputs(tmp_path):
    diagnosis = attention_backward_with("x if x.dtype == np.float64 else x.astype(np.float16)", tmp_path)
    assert diagnosis.status == "wrong"
    assert diagnosis.clues[0].startswith(
        "it is right with B = 2, T = 3, S = 4, D = 5, width = 6, but not with float32 inputs"
    )
    assert diagnosis.clues[1] == "dq is float16 but the inputs are float32: where is it rounded?"


def test_size_that_is_taken_for_granted_is_named(tmp_path):
    diagnosis = attention_backward_with("x * math.sqrt(5) / math.sqrt(args[1][0].shape[-1])", tmp_path)
    assert diagnosis.status == "wrong"
    assert diagnosis.clues[0].endswith("does it take D = 5 for granted?")
    assert diagnosis.mistakes == ()


def test_first_size_that_fails_is_not_blamed_if_another_number_is_at_fault(tmp_path):
    diagnosis = attention_backward_with("x * (1 + (abs(args[0]).max() > 2.5))", tmp_path)
    assert diagnosis.status == "wrong"
    assert "for granted" not in " ".join(diagnosis.clues)
