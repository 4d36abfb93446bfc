"""Which wrong gradients does the symmetry of the Hessian find, and which are still the gradient of another function?"""

import functools
import inspect
import sys
from pathlib import Path

import pytest

import minitransformer
from minitransformer.functional import cross_entropy_backward, gru, gru_backward, lstm_backward
from minitransformer.functional.cross_entropy import _cross_entropy_backward
from minitransformer.functional.positions import rows_from
from minitransformer.gradcheck.judge.report import OK
from minitransformer.gradcheck.subjects import SUBJECTS
from minitransformer.layers import LearnedPositions
from minitransformer.layers.since_2017.blockwise import blockwise_loss
from tests.museum.exhibits import EXHIBITS
from tests.museum.planting import planted

# what symmetry cannot find: the function whose gradient it is, the change, and a row of the table that shows it
STILL_A_GRADIENT = {
    "of the loss divided by the number of tokens": (
        (_cross_entropy_backward, "(share[rows] * dloss)", "(share[rows] * share[rows] * dloss)"),
        "cross_entropy smoothing=0.1 padding=True",
    ),
    "of the loss times the mean number of tokens in a sequence": (
        (cross_entropy_backward, "share, smoothing, overwrite)", "(share > 0) / shape[0], smoothing, overwrite)"),
        "cross_entropy smoothing=0.1 padding=True",
    ),
    "of the cross-entropy without label smoothing": (
        (_cross_entropy_backward, "dz_rows -= smoothing / dz.shape[-1]", "pass"),
        "cross_entropy smoothing=0.1 padding=True",
    ),
    "of the sum of the blocks' mean losses": ((blockwise_loss, "weight * share", "weight"), "GPT tokens_per_block=2"),
    "of the layer that adds the positions from 0 on": (
        (LearnedPositions.backward, "self.P.grad[start : start + T]", "self.P.grad[:T]"),
        "LearnedPositions start=2",
    ),
    "of the right layer: the forward pass is wrong": (
        (rows_from, "return table[start : start + T]", "return table[:T]"),
        "LearnedPositions start=2",
    ),
    "of the LSTM that outputs its carried state in padding": (
        (lstm_backward, "dy = dy * mask", "pass"),
        "lstm reverse=False padding=True",
    ),
    "of the GRU that outputs its carried state in padding": (
        (gru_backward, "dy = dy * mask", "pass"),
        "gru reverse=False padding=True",
    ),
    "of the right GRU: the forward pass is wrong": ((gru, "h[1:] * mask", "h[1:]"), "gru reverse=False padding=True"),
}


def is_right(subject):
    """Whether the gradients of a row are those of its forward pass; a bug may also break a shape."""
    try:
        return subject.check(max_entries=0, directions=1).verdict == OK
    except Exception:
        return False


def is_symmetric(subject):
    """Whether the derivative of its gradients is a symmetric matrix."""
    try:
        return subject.check_second_order(differences=False).verdict == OK
    except Exception:
        return False


@pytest.mark.parametrize("meaning", STILL_A_GRADIENT)
def test_a_wrong_gradient_that_is_the_gradient_of_another_function_is_symmetric(meaning):
    change, row = STILL_A_GRADIENT[meaning]
    with planted(*change):
        assert not is_right(SUBJECTS[row])
        assert is_symmetric(SUBJECTS[row])


@functools.cache
def rows_by_code():
    """{name of a row: the code objects of the package that it runs}"""
    package, rows = str(Path(minitransformer.__file__).parent), {}
    for name, subject in SUBJECTS.items():
        codes = rows[name] = set()
        sys.setprofile(lambda frame, event, argument, codes=codes: codes.add(frame.f_code))
        try:
            subject.check_second_order(differences=False)
        finally:
            sys.setprofile(None)
        rows[name] = {code for code in codes if code.co_filename.startswith(package)}
    return rows


def rows_that_run(exhibit):
    """The rows of the table that run the bug, the quickest first."""
    changed = {inspect.unwrap(getattr(function, "__func__", function)).__code__ for function in exhibit.functions}
    rows = rows_by_code()
    return [SUBJECTS[name] for name in sorted(rows, key=lambda name: len(rows[name])) if rows[name] & changed]


@pytest.mark.weekly
def test_symmetry_finds_every_wrong_gradient_of_the_museum_but_two():
    symmetric = []
    for exhibit in EXHIBITS:
        rows = rows_that_run(exhibit)
        with exhibit.planted():
            if not all(map(is_right, rows)) and all(map(is_symmetric, rows)):
                symmetric.append(exhibit.name)
    assert symmetric == [
        "the loss's gradient is divided by the number of tokens twice",
        "the loss's gradient is divided by B instead of B T",
    ]
