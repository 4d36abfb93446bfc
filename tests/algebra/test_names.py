"""Proves that derivatives of expressions with names are SymPy's, and that equal means equal."""

import pytest
import sympy

from tests.algebra import names
from tests.algebra.names import Gradient, without_names

a, b, c, d = sympy.symbols("a b c d", positive=True)
FUNCTIONS = {
    "exp": sympy.exp,
    "log": sympy.log,
    "tanh": sympy.tanh,
    "sqrt": sympy.sqrt,
    "reciprocal": lambda x: 1 / x,
}


def nested():
    """A weight of a softmax over tanh, the logarithm of its sum, and a root."""
    u, v = names.exp(names.tanh(a * b)), names.exp(c)
    return u * names.reciprocal(u + v) + names.log(u + v) / names.sqrt(a + c)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_slope_of_a_named_function_is_that_of_sympy(function):
    name = names.named(function, a + 3)
    slope = without_names(names.RULES[function](name, a + 3))
    assert sympy.simplify(slope - sympy.diff(FUNCTIONS[function](a + 3), a)) == 0


@pytest.mark.parametrize("symbol", [a, b, c])
def test_the_derivative_of_a_nested_expression_is_that_of_sympy(symbol):
    loss = nested()
    plain = sympy.diff(without_names(loss), symbol)
    ours = Gradient(loss, ()).by_symbol[symbol].as_expr()
    inverses = {s: 1 / sympy.Symbol(s.name[2:], positive=True) for s in ours.free_symbols if s.name.startswith("1/")}
    assert sympy.together(sympy.expand(without_names(ours.xreplace(inverses)) - plain)) == 0


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


def test_limits_need_no_names():
    assert [names.exp(-sympy.oo), names.tanh(-sympy.oo), names.tanh(sympy.oo)] == [0, -1, 1]
    assert [names.exp(sympy.S.Zero), names.log(sympy.S.One), names.tanh(sympy.S.Zero)] == [1, 0, 0]
