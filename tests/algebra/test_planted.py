"""Proves that the proofs can fail: a bug in the code breaks the identity, for each case another one."""

import pytest

from minitransformer import functional as F
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.attention import tiled
from tests.algebra.pairs import wrong_gradients
from tests.algebra.test_pairs import CASES, WIDE
from tests.museum import (
    exhibits_attention,
    exhibits_attention_kinds,
    exhibits_convolution,
    exhibits_extremes,
    exhibits_family,
    exhibits_functions,
    exhibits_positions,
    exhibits_recurrent,
)

MUSEUM = (
    exhibits_attention,
    exhibits_attention_kinds,
    exhibits_convolution,
    exhibits_extremes,
    exhibits_family,
    exhibits_functions,
    exhibits_positions,
    exhibits_recurrent,
)
OWN = (
    Exhibit(
        "the derivative of tanh is one less its value",
        "1 - tanh^2, and not 1 - tanh.",
        F.tanh_backward,
        "1.0 - y * y",
        "1.0 - y",
    ),
    Exhibit(
        "the queries' gradient forgets the scale in every tile",
        "The scale is in the queries that the keys meet, and not in the keys that the queries meet.",
        tiled._backward,
        "dq_rows *= cache.scale",
        "pass",
    ),
    Exhibit(
        "the heads of a group are taken apart token by token",
        "They stand one below the other, and not in turn.",
        F.ungroup_heads,
        "x.reshape(*q.shape[:-1], x.shape[-1])",
        "x.reshape(q.shape[0], q.shape[2], q.shape[1], -1).swapaxes(1, 2)",
    ),
)
BUGS = {bug.name: bug for exhibits in MUSEUM for bug in exhibits.EXHIBITS} | {bug.name: bug for bug in OWN}


def assert_caught(case):
    """The identity fails with the bug of the case, and holds again without it."""
    with BUGS[case.bug].planted():
        assert wrong_gradients(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_planted_bug_breaks_the_identity(case):
    assert_caught(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", WIDE, ids=lambda case: case.name)
def test_a_planted_bug_breaks_the_identity_for_wider_networks(case):
    assert_caught(case)


@pytest.mark.parametrize(
    ("case", "bug"),
    [
        ("rms_norm, as on a GPU, for any eps", "a token is scaled before it is squared, and its eps is not"),
        (
            "tiled_attention, causal, with a bias by distance",
            "the sum of the weights is not rescaled when the maximum grows",
        ),
    ],
)
def test_a_maximum_that_does_not_cancel_is_noticed(case, bug):
    with BUGS[bug].planted():
        assert "free symbols" in wrong_gradients(next(each for each in CASES if each.name == case))
