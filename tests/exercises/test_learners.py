"""Whatever a learner's file does, the checker answers: a hang, a crash, a print, a changed input, a list, float32."""

import pytest

from minitransformer.exercises import check, diagnose, find_exercise
from tests.exercises.answers import hand_in

EXERCISE = find_exercise("06_attention_backward")
RIGHT = EXERCISE.solution
WRAPPED = RIGHT.replace("def attention_backward", "def right") + "\n\ndef attention_backward(do, cache):\n"


def found(body, tmp_path):
    """The one diagnosis on a function with this body, in which `right` is the right function."""
    text = WRAPPED + "\n".join(f"    {line}" for line in body.splitlines())
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, text, tmp_path))
    return diagnosis


@pytest.mark.parametrize(
    "body",
    [
        "return [array.tolist() for array in right(do, cache)]",
        "return list(right(do, cache))",
        "return tuple(array[::-1][::-1] for array in right(do, cache))",  # views
        "print('something')\nreturn right(do, cache)",
        "return tuple(np.asfortranarray(array) for array in right(do, cache))",
    ],
)
def test_right_answer_passes_however_it_is_returned(body, tmp_path):
    assert found(body, tmp_path).status == "passed"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("right(do, cache)", "it returns nothing; a `return dq, dk, dv` is missing"),
        ("return right(do, cache)[:2]", "it returns 2 but should return 3: dq, dk, dv"),
        ("return right(do, cache)[0]", "it returns one value but should return 3"),
        ("return *right(do, cache)[:2], 'dv'", "dv should be an array of numbers"),
        ("return *right(do, cache)[:2], [[1.0], [2.0, 3.0]]", "dv should be an array of numbers"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq, dk.astype(np.float32), dv",
            "dk is float32 but the inputs are float64",
        ),
        ("dq, dk, dv = right(do, cache)\nreturn dq * 1j, dk, dv", "dq is complex but the inputs are real"),
        ("result = right(do, cache)\ncache[3][...] = 0\nreturn result", "it changes its inputs"),
        ("do *= 1.0000001\nreturn right(do, cache)", "it changes its inputs"),
        (
            "global n\nn = globals().get('n', 0) + 1\nreturn tuple(n * x for x in right(do, cache))",
            "two calls with the",
        ),
        ("return right(do, cache[::-1])", "ValueError: "),
        ("x = 1 / 0\nreturn right(do, cache)", "ZeroDivisionError: division by zero in line"),
        ("raise KeyError", "KeyError in line"),
        ("dq, dk, dv = right(do, cache)\nreturn dq * np.nan, dk, dv", "dq has 30 entries that are infinite or NaN"),
        ("dq, dk, dv = right(do, cache)\nreturn dq.swapaxes(1, 2), dk, dv", "it is transposed"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq[None] * np.ones((3, 1, 1, 1)), dk, dv",
            "sums its gradients over them",
        ),
        ("dq, dk, dv = right(do, cache)\nreturn dq.sum(axis=1, keepdims=True), dk, dv", "an axis was summed"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq.reshape(-1), dk, dv",
            "a reshape is missing, or there is one too many",
        ),
        ("dq, dk, dv = right(do, cache)\nreturn -dq, dk, dv", "yours / right = -1 everywhere: the sign"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk / 3, dv", "yours / right = 0.3333 everywhere = 1/T"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk, 5 * dv", "yours / right = 5 everywhere = d_k"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk * 0, dv", "dk is 0 everywhere"),
        (
            "dq, dk, dv = right(do, cache)\ndv[0] *= 1.3\nreturn dq, dk, dv",
            "it is wrong only where the index of B is 0",
        ),
        ("dq, dk, dv = right(do, cache)\ndv[:, 1:] *= 2\nreturn dq, dk, dv", "it is right where the index of S is 0"),
        ("dq, dk, dv = right(do, cache)\ndv[0, 1, 2] += 1\nreturn dq, dk, dv", "worst dv[0,1,2]"),
        ("dq, dk, dv = right(do, cache)\nreturn dq + 1, dk, dv", "dq is not 0 when dy is 0"),
        ("return tuple(x * abs(do).max() for x in right(do, cache))", "does not double when dy doubles"),
        ("return right(np.ones_like(do), cache)", "dq does not depend on dy"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq, dk + dv[..., :5], dv",
            "this should hold but does not: dk summed over the keys",
        ),
    ],
)
def test_what_is_wrong_is_put_into_words(body, complaint, tmp_path):
    diagnosis = found(body, tmp_path)
    assert diagnosis.status == "wrong"
    assert any(complaint in clue for clue in diagnosis.clues), diagnosis.clues


def test_crash_is_shown_with_the_learners_own_line(tmp_path):
    (clue,) = found("y = do @ cache[0]\nreturn right(do, cache)", tmp_path).clues
    assert clue.endswith("y = do @ cache[0]")


def test_mistake_in_one_output_is_named_for_that_output(tmp_path):
    mistaken = "dq, dk, dv = right(do, cache)\nreturn dq * math.sqrt(5), dk, dv"
    names = [name for name, _ in found(mistaken, tmp_path).mistakes]
    assert "dq: the scale of the scores is missing" in names


def test_mistake_that_nobody_knows_is_called_so(tmp_path):
    diagnosis = found("dq, dk, dv = right(do, cache)\nreturn dq + dq[..., ::-1], dk, dv", tmp_path)
    assert diagnosis.mistakes == ()
    assert diagnosis.clues[-1] == "this is not one of the known mistakes"


def test_given_forward_that_was_changed_is_noticed(tmp_path):
    text = RIGHT + "\n\ndef attention(q, k, v):\n    return 2 * v[:, :3], (q, k, v, v)\n"
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, text, tmp_path))
    assert "the given function attention no longer returns what it did" in diagnosis.clues[0]
    text = RIGHT + "\n\ndef attention(q, k, v):\n    return nothing\n"
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, text, tmp_path))
    assert "the given function attention fails now: NameError" in diagnosis.clues[0]


def test_forward_may_remember_more_for_its_backward(tmp_path):
    text = WRAPPED + "    return right(do, cache[:4])\n\n\ndef attention(q, k, v, given=attention):\n"
    text += "    o, cache = given(q, k, v)\n    return o, (*cache, 'mine')\n"
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, text, tmp_path))
    assert diagnosis.status == "passed"


def test_file_that_cannot_be_run_and_function_that_is_gone_are_said(tmp_path):
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, "def attention_backward(:\n", tmp_path))
    assert "the file does not run: SyntaxError" in diagnosis.clues[0]
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, "del attention_backward\n", tmp_path))
    assert "there is no function attention_backward in the file any more" in diagnosis.clues[0]


def test_loop_that_never_ends_is_stopped(tmp_path):
    path = hand_in(EXERCISE, "def attention_backward(do, cache):\n    while True:\n        pass\n", tmp_path)
    (diagnosis,), _ = check(EXERCISE, path, limit=1)
    assert diagnosis.clues == ("it was stopped after 1 s: is there a loop that never ends?",)


def test_file_that_ends_the_process_is_survived(tmp_path):
    path = hand_in(EXERCISE, "import os\n\nos._exit(3)\n", tmp_path)
    (diagnosis,), _ = check(EXERCISE, path)
    assert "its process ended with status 3" in diagnosis.clues[0]


def test_what_the_file_prints_is_kept_apart(tmp_path):
    (diagnosis,), printed = check(EXERCISE, hand_in(EXERCISE, 'print("{]")\n' + RIGHT, tmp_path))
    assert diagnosis.status == "passed"
    assert printed == "{]\n"
