"""Whatever a learner's file does, the checker answers: a crash, a print, a changed input, a list, float32."""

import errno
import os

import pytest

from minitransformer.cli import main as run_command
from minitransformer.exercises import Workshop, diagnose, find_exercise
from minitransformer.exercises.diagnose import diagnose_task
from minitransformer.exercises.exercise import load
from tests.exercises.answers import EXERCISES, hand_in
from tests.tiers import some

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
        ("return right(do, cache)[:2]", "it returns 2 values but should return 3: dq, dk, dv"),
        ("return right(do, cache)[0]", "it returns one ndarray but should return 3"),
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
        ("y = do @ cache[0]\nreturn right(do, cache)", ":  y = do @ cache[0]"),
        ("dq, dk, dv = right(do, cache)\nreturn dq.swapaxes(1, 2), dk, dv", "it is transposed"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq[None] * np.ones((3, 1, 1, 1)), dk, dv",
            "sums its gradients over them",
        ),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq.sum(axis=1, keepdims=True), dk, dv",
            "an axis was summed that should have stayed",
        ),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq.reshape(-1), dk, dv",
            "the number of entries is right, so a reshape is missing or wrong",
        ),
        ("dq, dk, dv = right(do, cache)\nreturn -dq, dk, dv", "yours / right = -1 everywhere: the sign is wrong"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk / 3, dv", "yours / right = 0.3333 everywhere = 1/T"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk, 5 * dv", "yours / right = 5 everywhere = D"),
        ("dq, dk, dv = right(do, cache)\nreturn dq, dk * 0, dv", "dk is 0 everywhere"),
        (
            "dq, dk, dv = right(do, cache)\ndv[0] *= 1.3\nreturn dq, dk, dv",
            "dv is wrong only where the index of B is 0",
        ),
        ("dq, dk, dv = right(do, cache)\ndv[:, 1:] *= 2\nreturn dq, dk, dv", "dv is right where the index of S is 0"),
        ("dq, dk, dv = right(do, cache)\ndv[0, 1, 2] += 1\nreturn dq, dk, dv", "worst dv[0,1,2]"),
        ("dq, dk, dv = right(do, cache)\nreturn dq + 1, dk, dv", "dq is not 0 when do is 0"),
        (
            "dq, dk, dv = right(do, cache)\nreturn dq - dq.mean(-1, keepdims=True), dk, dv",
            "one path is missing: what dq",
        ),
        ("return tuple(x * abs(do).max() for x in right(do, cache))", "does not double when do doubles"),
        ("return right(np.ones_like(do), cache)", "dq does not depend on do"),
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


NONSENSE = """
import sys

import numpy as np


class Evil:
    def __array__(self, *args, **options):
        raise RuntimeError("no array")

    def __repr__(self):
        raise RuntimeError("no text")


class SilentError(Exception):
    __str__ = Evil.__repr__


def endless(*args):
    return endless(*args)


def do(*actions):
    def function(*args, **options):
        for action in actions:
            action(*args)

    return function


def fail(error):
    raise error


def swallow(x):
    if isinstance(x, np.ndarray):
        x[...] = 0
    elif isinstance(x, dict | list):
        x.clear()


itself = []
itself.append(itself)
answers = [None, (), [], {}, "text", 3, np.nan, 10**400, object(), print, np.array([]), np.zeros((0, 3)), [[1, 2], [3]]]
answers += [np.array(["a"]), np.array([None]), np.zeros((1,) * 9), np.zeros(3, "M8[s]"), True, {1}, iter(()), Evil()]
answers += [itself, range(3), np.full((2, 2), 1j), np.float16(3), np.array(10**30), np.nan * np.ones((2, 3, 4))]
functions = [lambda *args, answer=answer: answer for answer in answers]
functions += [lambda *args, answer=answer: (answer,) * COUNT for answer in answers if COUNT > 1]
functions += [lambda *args: args, lambda *args: args[0], lambda *args: [x for x in args], lambda: 0]
functions += [do(lambda *args: print("printed")), endless, sys.exit, do(lambda *args: sys.exit("bye"))]
functions += [do(lambda *args: fail(Exception())), do(lambda *args: fail(SilentError())), do(Evil().__array__)]
functions += [do(lambda *args: fail(ValueError("two\\nlines " + 9999 * "long "))), do(lambda *args: fail(MemoryError))]
functions += [lambda *args: [swallow(x) for x in args]]
"""


@pytest.mark.parametrize("exercise", some(EXERCISES, 24, guard=4), ids=lambda exercise: exercise.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_a_function_returns_or_raises_there_is_one_line_about_it(exercise, tmp_path):
    given = load(exercise.path)
    for task in exercise.tasks:
        mine = load(hand_in(exercise, f"COUNT = {len(task.outputs)}\n{NONSENSE}", tmp_path))
        for function in mine.functions:
            setattr(mine, task.function, function)
            diagnosis = diagnose_task(exercise, task, mine, given, tmp_path / f"{exercise.name}.py")
            assert diagnosis.status == "wrong"
            assert diagnosis.clues
            assert all(len(clue) < 600 and "\n" not in clue for clue in diagnosis.clues)


def test_numbers_that_are_not_finite_are_not_called_nonlinear(tmp_path):
    diagnosis = found("dq, dk, dv = right(do, cache)\nreturn dq * np.nan, dk, dv", tmp_path)
    assert any("dq has 30 entries that are infinite or NaN" in clue for clue in diagnosis.clues)
    assert not any("when do" in clue for clue in diagnosis.clues)


def test_mistake_in_one_output_is_named_for_that_output(tmp_path):
    mistaken = "dq, dk, dv = right(do, cache)\nreturn dq * math.sqrt(5), dk, dv"
    names = [name for name, _ in found(mistaken, tmp_path).mistakes]
    assert "dq: the scale of the scores, 1/√D, is missing on the way back" in names


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def attention_backward(:\n", "the file does not run: SyntaxError"),
        ("del attention_backward\n", "there is no function attention_backward in the file any more"),
        ("raise SystemExit", "the file does not run: SystemExit in line"),
        ("raise SystemExit('bye')", "the file does not run: SystemExit: bye in line"),
        ("open('nothing')", "the file does not run: FileNotFoundError"),
        ("1 / 0", "the file does not run: ZeroDivisionError: division by zero in line"),
        ("'\xe4'.encode('latin-1').decode()", "the file does not run: UnicodeDecodeError"),
    ],
)
def test_file_that_does_not_come_to_its_end_gets_one_line(text, complaint, tmp_path):
    (diagnosis,) = diagnose(EXERCISE, hand_in(EXERCISE, text, tmp_path))
    (clue,) = diagnosis.clues
    assert complaint in clue


@pytest.mark.parametrize(
    ("before", "encoding"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"# -*- coding: latin-1 -*-\n", "latin-1"),
        (b"\xef\xbb\xbf# coding: utf-8\r\n", "utf-8"),
    ],
)
def test_file_is_read_in_the_encoding_that_it_declares(before, encoding, tmp_path):
    path = tmp_path / "mine.py"
    text = f"assert [ord(letter) for letter in '\xe4'] == [0xe4]\n{EXERCISE.solution}"
    path.write_bytes(before + f"{EXERCISE.path.read_text('utf-8')}\n{text}".encode(encoding, "replace"))
    (diagnosis,) = diagnose(EXERCISE, path)
    assert diagnosis.status == "passed", diagnosis
    path.write_bytes(before + "word = '\xe4'; word.missing\n".encode(encoding))
    (diagnosis,) = diagnose(EXERCISE, path)
    assert diagnosis.clues[0].endswith("word = '\xe4'; word.missing")


def test_file_in_another_encoding_than_it_declares_gets_one_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"word = '\xe4'\n")
    (diagnosis,) = diagnose(EXERCISE, path)
    (clue,) = diagnosis.clues
    assert clue.startswith("the file does not run: SyntaxError: ")  # the rest depends on Python's version
    assert "xe4" in clue


def test_file_that_cannot_be_read_is_not_called_missing(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    missing, special, loop = (tmp_path / name for name in ("no.py", "pipe", "loop.py"))
    os.mkfifo(special)
    loop.symlink_to(loop)  # nobody may read it, not even root
    assert [diagnose(EXERCISE, each)[0].clues for each in (missing, tmp_path, special, loop)] == [
        (f"there is no file {missing}",),
        (f"{tmp_path} is a folder, not a file",),
        (f"{special} is not a regular file",),
        (f"cannot read {loop}: {os.strerror(errno.ELOOP)}",),
    ]
    workshop = Workshop(tmp_path)
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os.path, "exists", lambda path: False)  # as Path.exists says from Python 3.14 on
    with pytest.raises(OSError, match="Permission denied"):
        workshop.start(EXERCISE)
    assert run_command(["check", EXERCISE.name, "--folder", str(tmp_path)]) == 2
