"""What the judge of the blank file finds out about a piece: where its weights are, and which sizes it takes."""

import collections
import types

from support import blank
from support.piece import Piece

import numpy as np
import pytest

from tests.lessons.test_blank import file_of, said

HOLDERS = {  # where a weight may be: the piece that the example returns
    "an object": "own",
    "variables around two functions": "(own.forward, own.backward)",
    "the object of two methods": "(MethodType(forward, own), MethodType(backward, own))",
    "an argument that is bound": "(partial(forward, own), partial(backward, own))",
    "a default": "((lambda x, o=own: forward(o, x)), (lambda dy, x, o=own: backward(o, dy, x)))",
    "a global variable": "((lambda x: forward(kept, x)), (lambda dy, x: backward(kept, dy, x)))",
}
HELD = """
from functools import partial
from types import MethodType, SimpleNamespace
import numpy as np
rng = np.random.default_rng(0)
class Weight:
    __slots__ = ("data", "grad")
    def __init__(self, data):
        self.data, self.grad = data, np.zeros_like(data)
def forward(own, x):
    return x @ own.w.data, x
def backward(own, dy, x):
    own.w.grad += np.einsum("btc,btd->cd", x, dy)
    return dy @ own.w.data.T
def make():
    own = SimpleNamespace(w=Weight(rng.standard_normal((3, 4))))
    own.forward, own.backward = (lambda x: forward(own, x)), (lambda dy, x: backward(own, dy, x))
    return own
kept = make()
def example_linear():
    own = make()
    return PIECE, rng.standard_normal((2, 5, 3))
"""


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_weight_is_tried_wherever_the_piece_keeps_it(holder, tmp_path):
    text = HELD.replace("PIECE", HOLDERS[holder])
    assert "ok linear: 2 gradients" in said(file_of(text, tmp_path))[1]
    assert "WRONG linear: wrong in 1 of 2 arrays" in said(file_of(text.replace("x, dy)", "x, 2 * dy)"), tmp_path))[1]


def test_weights_of_the_same_name_around_several_functions_are_all_found():
    def gain():
        g = types.SimpleNamespace(data=np.ones(3), grad=np.zeros(3))
        return lambda x: (g.data * x, lambda dy: g.data * dy)

    one, two = gain(), gain()
    assert list(Piece(lambda x: two(one(x)[0])).found) == ["one.g", "two.g"]


def test_a_global_array_without_a_gradient_beside_it_is_doubted_unless_it_is_read_only(tmp_path):
    text = "import numpy as np\n\nw = {'g': np.ones(3)}\n\n\ndef example():\n    return scaled, np.ones((2, 3))\n"
    text += "\n\ndef scaled(x):\n    return x * w['g'], lambda dy: dy * w['g']\n"
    assert "cannot tell example the output depends on w['g'], which has no gradient" in said(file_of(text, tmp_path))[1]
    text += "\n\nw['g'].setflags(write=False)\n"
    assert "ok example: 1 gradient" in said(file_of(text, tmp_path))[1]


def test_a_piece_may_have_weights_alone_as_its_inputs():
    ids = np.array([[3, 1, 3]])

    def embed(w):
        def back(dy):
            dE = np.zeros_like(w["E"])
            np.add.at(dE, ids, dy)
            return {"E": dE}

        return w["E"][ids], back

    weights = {"E": np.random.default_rng(0).normal(size=(5, 4))}
    report = blank.try_piece(lambda: (embed, weights))
    assert report.passed, report
    report = blank.try_piece(lambda: (lambda w: (w["E"] ** 2, lambda dy: {"E": w["E"] * dy}), weights))
    assert [check.name for check in report.failures] == ["E"]
    assert report.clues[0].startswith("E: yours / right = 0.5 everywhere")


def test_weights_may_be_a_tuple_and_a_tuple_of_numbers_is_a_size():
    Pair = collections.namedtuple("Pair", "W b")

    def linear(x, weights, size):
        def back(dy):
            return dy.reshape(-1, 4) @ weights.W.T, (x.T @ dy.reshape(-1, 4), dy.reshape(-1, 4).sum(axis=0))

        return (x @ weights.W + weights.b).reshape(-1, *size), back

    rng = np.random.default_rng(0)
    weights = Pair(rng.normal(size=(3, 4)), rng.normal(size=4))
    report = blank.try_piece(lambda: (linear, (rng.normal(size=(5, 3)), weights, (2, 2))))
    assert report.passed, report
    assert [check.name for check in report.checks] == ["x", "0", "1"]


def test_a_mask_that_the_example_does_not_give_is_named_as_a_reason_why_other_sizes_fail(tmp_path):
    text = """
import numpy as np

def forward(x, mask):
    return (x * mask).sum(axis=1), (x, mask)

def backward(dy, cache):
    x, mask = cache
    dx = np.zeros_like(x)
    dx += dy[:, None] * mask
    return dx

def example_masked():
    mask, x = np.tri(5, 4)[None] > 0, np.random.default_rng(0).standard_normal((2, 5, 4))
    return GIVEN
"""
    closed = text.replace("GIVEN", "((lambda x: forward(x, mask)), backward), x")
    assert "Does the example hold a mask of the old length? Then make it an input" in said(file_of(closed, tmp_path))[1]
    assert (
        "ok masked: 1 gradient" in said(file_of(text.replace("GIVEN", "(forward, backward), (x, mask)"), tmp_path))[1]
    )


def test_a_backward_for_one_size_is_doubted_once_whatever_its_name(tmp_path):
    text = """
import numpy as np

def square(x):
    def back(dy):
        return 2 * x * dy.reshape(2, 5, 4)

    return x * x, back

def example_square():
    return square, np.random.default_rng(0).standard_normal((2, 5, 4))
"""
    text = said(file_of(text, tmp_path))[1]
    assert "cannot tell square forward takes other sizes, and backward fails: with B = 1:" in text
    assert "in back (return 2 * x * dy.reshape(2, 5, 4))" in text
    assert text.count("forward takes other sizes") == 1
