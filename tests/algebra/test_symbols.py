"""Proves that the array module computes what NumPy does, and that its numbers are what they should be."""

import contextlib
import math
from unittest import mock

import numpy as np
import pytest
import sympy

from minitransformer import functional as F
from minitransformer.backend import use_backend
from minitransformer.functional.since_2017 import activations
from tests.algebra import cases_functions, cases_sequences, names, symbols
from tests.algebra.pairs import forward_of
from tests.algebra.test_pairs import CASES

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "reciprocal": lambda a: 1 / a,
    "normal_cdf": lambda a: (1 + math.erf(a / math.sqrt(2))) / 2,
}
NUMBERS = {"EPS": 0.5, "RATE": 0.125, "SCALE": 0.75}
ARRAYS = {"TARGETS": np.array([[1, 0, 2]]), "KEYS": cases_sequences.MASK[:1, None, None]}
TABLES = {"COS": np.array([[0.5, -1.5], [2.0, 0.25]]), "SIN": np.array([[1.0, 0.5], [-0.75, 3.0]])}
CONSTANTS = {"LINEAR": activations.LINEAR, "CUBIC": activations.CUBIC}


def evaluate(expression, values):
    """An expression as a number; `values` has those of the symbols, and is filled with those of the names."""
    if expression.is_Symbol:
        if expression not in values:
            function, argument = names.definition(expression)
            values[expression] = FUNCTIONS[function](evaluate(argument, values))
        return values[expression]
    if expression.is_number:
        return float(expression)
    parts = [evaluate(part, values) for part in expression.args]
    return sum(parts) if expression.is_Add else math.prod(parts) if expression.is_Mul else parts[0] ** parts[1]


def draw(rng, x):
    """A random number with the sign of each symbol."""
    signs = [(-1 if s.is_negative else 1) if s.is_positive or s.is_negative else rng.choice([-1, 1]) for s in x.flat]
    return rng.uniform(0.5, 2.0, x.shape) * np.reshape(signs, x.shape)


def symbols_with_values():
    """The numbers for the symbols that are not inputs."""
    values = {getattr(cases_functions, name): number for name, number in NUMBERS.items()}
    for name, table in TABLES.items():
        values.update(zip(getattr(cases_functions, name).flat, table.flat, strict=True))
    values.update({cases_functions.CONSTANTS[name]: number for name, number in CONSTANTS.items()})
    return values | dict.fromkeys(symbols.free, 0.75)


class Numbers:
    """NumPy under another name, with which the library takes the branches that it takes on symbols."""

    ndarray = np.ndarray

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, attribute):
        return getattr(np, attribute)


@contextlib.contextmanager
def numbers_instead():
    """Inside a `with` block the cases have numbers where they have symbols."""
    with contextlib.ExitStack() as stack:
        for module in (cases_functions, cases_sequences):
            changes = {name: x for name, x in {**NUMBERS, **ARRAYS, **TABLES}.items() if hasattr(module, name)}
            stack.enter_context(mock.patch.multiple(module, **changes))
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_on_symbols_is_forward_on_numbers(case):
    symbols.free.clear()
    inputs, outputs, _ = forward_of(case)
    rng = np.random.default_rng(7)
    arrays = [draw(rng, x) for x in inputs]
    with numbers_instead(), use_backend(Numbers(case.backend)):
        forward = getattr(F, case.function) if "gelu" in case.function or "geglu" in case.function else case.forward
        expected, _ = forward(*(x.copy() for x in arrays))
    values = symbols_with_values()
    for x, array in zip(inputs, arrays, strict=True):
        values.update(zip(x.flat, array.flat, strict=True))
    for y, theirs in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
        ours = np.array([evaluate(entry, values) for entry in y.flat]).reshape(y.shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("number", "fraction"), [(0.1, "1/10"), (1.0 / 3, "1/3"), (0.25, "1/4"), (-1e-5, "-1/100000")])
def test_a_float_is_the_simplest_fraction_that_rounds_to_it(number, fraction):
    assert symbols.exact(number) == sympy.Rational(fraction)


def test_a_comparison_that_signs_do_not_decide_needs_an_answer():
    x = symbols.wrap(np.array([sympy.Symbol("x", real=True)]))
    with pytest.raises(TypeError, match="undecided"):
        np.greater(x, 0)
    for answer in (True, False):
        with symbols.comparisons_are(answer):
            assert (x > 0) == answer
