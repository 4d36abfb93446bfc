"""Proves that equal means equal. A wrong rule for a derivative would contradict the backward functions."""

import pytest
import sympy

from tests.algebra import names
from tests.algebra.names import Gradient

a, b, c, d = sympy.symbols("a b c d", positive=True)


def test_a_derivative_equals_itself_and_nothing_else():
    u, v = names.exp(a), names.exp(b)
    p = u * names.reciprocal(u + v)
    gradient = Gradient(p, [p * (1 - p), p * (1 - p) + a, 2 * p])
    assert gradient.equals(a, p * (1 - p))
    assert gradient.equals(b, -p * (1 - p))
    assert not gradient.equals(a, p * (1 - p) + a)
    assert not gradient.equals(a, 2 * p)
    assert gradient.equals(c, sympy.S.Zero)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda: names.exp(a + b) * names.exp(-a), lambda: names.exp(b)),
        (lambda: names.exp(a - names.log(b + c)), lambda: names.exp(a) * names.reciprocal(b + c)),
        (lambda: names.sqrt(a * a + 1) ** 4, lambda: (a * a + 1) ** 2),
        (lambda: names.reciprocal(a + 1) * (a + 1), lambda: sympy.S.One),
        (lambda: names.reciprocal((a + 1) * b**2) * b, lambda: names.reciprocal(a * b + b)),
        (lambda: names.reciprocal(names.exp(a) + 2), lambda: names.exp(-a) * names.reciprocal(1 + 2 * names.exp(-a))),
    ],
)
def test_two_forms_of_one_expression_are_equal(left, right):
    one, other = left(), right()
    gradient = Gradient(d * one, [other, other + 1])
    assert gradient.equals(d, other)
    assert not gradient.equals(d, other + 1)
