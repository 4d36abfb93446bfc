"""The paper's learning rate (section 5.3, equation 3): its values, its peak, its rise and its fall."""

import itertools
import math

import pytest

from minitransformer.training.optimizers import noam
from minitransformer.training.schedules import cosine

pytestmark = pytest.mark.host_only  # plain numbers


@pytest.mark.parametrize("step", [1, 2, 17, 399, 400, 401, 5000, 100_000])
def test_rate_equals_the_papers_formula(step):
    expected = 0.7 * (1 / math.sqrt(96)) * min(1 / math.sqrt(step), step / (400 * math.sqrt(400)))
    assert math.isclose(noam(step, 96, warmup=400, factor=0.7), expected, rel_tol=1e-14)


@pytest.mark.parametrize("step", [0, -1])
def test_step_below_one_is_refused(step):
    with pytest.raises(ValueError, match=f"counts from 1, got {step}"):
        noam(step, 512)


def test_rate_is_a_plain_float():
    assert type(noam(3, 512)) is float  # a NumPy float64 would turn float32 weights into float64


def test_cosine_rises_straight_and_falls_along_half_a_cosine_to_zero():
    rates = [cosine(step, 120, 0.5, warmup=20) for step in range(1, 121)]
    for step in range(1, 21):
        assert math.isclose(rates[step - 1], 0.5 * step / 20, rel_tol=1e-14)
    assert math.isclose(rates[70 - 1], 0.25, rel_tol=1e-14)  # half-way down
    assert math.isclose(rates[45 - 1], 0.25 * (1 + math.sqrt(0.5)), rel_tol=1e-14)  # an eighth of a turn
    assert rates[-1] < 1e-16
    assert all(later < earlier for earlier, later in itertools.pairwise(rates[19:]))


def test_cosine_stays_at_zero_after_the_last_step_and_has_no_step_zero():
    assert cosine(500, 120, 0.5) < 1e-16
    with pytest.raises(ValueError, match="counts from 1"):
        cosine(0, 120, 0.5)


def test_the_papers_numbers_are_the_defaults():
    assert noam(123, 512) == noam(123, 512, warmup=4000, factor=1.0)
    assert cosine(100, 300, 0.5) == 0.5 > cosine(101, 300, 0.5)
    assert cosine(99, 300, 0.5) == pytest.approx(0.5 * 99 / 100)


def test_cosine_ends_at_zero_also_where_its_fall_is_one_step_or_none():
    assert cosine(20, 21, 0.5, warmup=20) == 0.5
    assert cosine(21, 21, 0.5, warmup=20) < 1e-16
    for steps in (20, 5):  # the rise takes the whole run; what would come after it is 0
        assert cosine(20, steps, 0.5, warmup=20) == 0.5
        assert cosine(21, steps, 0.5, warmup=20) < 1e-16
