"""The verdicts on random layers are never false, and seldom "cannot tell". `thousand.py` prints the whole table."""

import numpy as np
import pytest

from minitransformer.gradcheck.report import CANNOT_TELL
from tests.gradcheck.random_layers import KINDS, draw_case
from tests.gradcheck.thousand import verdicts


def assert_never_false(seeds, most_unclear):
    found = list(verdicts(seeds))
    false = [f"seed {v.seed}: {v.case.text}; {v.case.mistake}\n{v.report}" for v in found if v.false]
    assert not false, "\n\n".join(false)
    assert sum(v.report.verdict == CANNOT_TELL for v in found) <= most_unclear


def test_ten_random_layers_get_no_false_verdict():
    assert_never_false(range(5), most_unclear=1)


@pytest.mark.exhaustive
def test_three_hundred_random_layers_get_no_false_verdict():
    assert_never_false(range(150), most_unclear=3)


def test_the_same_seed_draws_the_same_layer():
    first, second = draw_case(4, right=False), draw_case(4, right=False)
    assert (first.text, first.mistake) == (second.text, second.mistake)
    assert np.array_equal(first.x, second.x)


def test_random_layers_come_in_three_kinds_right_and_wrong():
    cases = [(right, draw_case(seed, right)) for seed in range(9) for right in (True, False)]
    assert {case.kind for _, case in cases} == set(KINDS)
    assert all(bool(case.mistake) != right for right, case in cases)
