"""Proves each backward function: it is the derivative of its forward function, for all numbers at once.

The code itself runs on symbols. For the sizes, the masks and the branch of a case, each gradient that the code returns
is the derivative of sum(dy y), as an identity between rational functions of the inputs, dy, and the values of exp, tanh
and so on. The numbers that are subtracted only against overflow are free symbols, and must cancel.
"""

import itertools

import numpy as np
import pytest

from minitransformer import functional as F
from tests.algebra.cases_functions import CASES as FUNCTIONS
from tests.algebra.cases_sequences import CASES as SEQUENCES
from tests.algebra.cases_sequences import WIDE
from tests.algebra.pairs import Case, wrong_gradients

CASES = FUNCTIONS + SEQUENCES
SLOW = ("lstm, two steps", "lstm, in the reverse order, with padding", "gru, two steps")
PERMUTATIONS = {"split_heads", "merge_heads", "group_heads", "ungroup_heads"}  # each is the backward of another
WITHOUT_GRADIENT = {
    "alibi_bias": "a constant table",
    "alibi_slopes": "constant numbers",
    "causal_mask": "a mask of booleans",
    "erf": "computed from a rational fit, whose derivative is not that of erf; GELU's own backward takes normal_pdf",
    "group_advantages": "numbers about answers, which the loss takes as they are",
    "padding_mask": "a mask of booleans",
    "relative_buckets": "integers",
    "rotary_tables": "a constant table",
    "rows_from": "cuts rows out of a table; the layer of learnt positions has its backward",
    "sinusoidal_positions": "a constant table",
}


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, marks=pytest.mark.exhaustive) if case.name in SLOW else case for case in CASES),
        *(pytest.param(case, marks=pytest.mark.weekly) for case in WIDE),
    ],
    ids=lambda case: case.name,
)
def test_backward_is_the_derivative_of_forward(case):
    assert wrong_gradients(case) == []


@pytest.mark.parametrize("mask", list(itertools.product([False, True], repeat=3)), ids=str)
def test_softmax_backward_is_the_derivative_under_every_mask(mask):
    case = Case("softmax", "", lambda s: F.softmax(s, np.array(mask)), F.softmax_backward, {"scores": (2, 3)})
    assert wrong_gradients(case) == []


def test_every_function_is_proven_or_has_no_gradient():
    proven = {case.function for case in CASES} & set(F.__all__)
    backwards = {name for name in F.__all__ if name.endswith("_backward")}
    assert {f"{name}_backward" for name in proven - PERMUTATIONS} == backwards
    assert proven | backwards | WITHOUT_GRADIENT.keys() == set(F.__all__)
    assert not proven & WITHOUT_GRADIENT.keys()
