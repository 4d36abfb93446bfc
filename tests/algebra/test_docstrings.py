"""Proves the "Jacobian" lines of the docstrings that speak of one row: they are the derivative of the code.

Each function below returns the input, the output, and the entry (i, j) of the Jacobian, as the docstring prints it. The
lines "Chain" are what the backward functions compute, which test_pairs.py proves.
"""

import re

import numpy as np
import pytest
import sympy

from minitransformer import functional as F
from minitransformer.backend import use_backend
from tests.algebra import names, symbols
from tests.algebra.cases_functions import EPS, with_exact_cdf
from tests.algebra.names import Gradient
from tests.algebra.pairs import Signed, variables

NOT_READ = {
    "dpo": "speaks of the margin u",
    "grpo": "two terms, and cases in words",
    "conv1d": "a sum over the taps of the kernel",
    "elu_plus_one": "two cases in words",
    "embedding": "ids with two indices",
    "geglu": "primed letters",
    "gelu_tanh": "primed letters",
    "gru": "one step, some of it in words",
    "linear": "does not repeat that both sides speak of the same token",
    "lstm": "one step, some of it in words",
    "relative_bias": "buckets with two indices",
    "silu": "primed letters",
}


def row(name, is_signed=False):
    return variables(name, Signed((3,)) if is_signed else (3,))


def one_if(holds):
    return int(bool(holds))


def softmax():
    """p_i (1[i = j] - p_j)"""
    s = row("s")
    p, _ = F.softmax(s)
    return s, p, lambda i, j: p[i] * (one_if(i == j) - p[j])


def cross_entropy():
    """1[i = j] - p_j"""
    z = row("z")
    _, cache = F.cross_entropy(z, symbols.wrap(np.array(1)))
    return z, np.log(cache.p[0]), lambda i, j: one_if(i == j) - cache.p[0][j]


def token_log_probs():
    """1[i = j] - p_j"""
    z = row("z")
    _, cache = F.token_log_probs(z, symbols.wrap(np.array(1)), symbols.wrap(np.array(True)))
    return z, np.log(cache.p[0]), lambda i, j: one_if(i == j) - cache.p[0][j]


def layer_norm():
    """r (1[i = j] - 1/C - x_hat_i x_hat_j / C)"""
    x, C = variables("x", (2, 3)), sympy.Integer(3)
    _, cache = F.layer_norm(x, row("gamma"), row("beta"), eps=EPS)
    x_hat, r = cache.x_hat[0], cache.rstd[0, 0]
    return x[0], x_hat, lambda i, j: r * (one_if(i == j) - 1 / C - x_hat[i] * x_hat[j] / C)


def rms_norm():
    """r (1[i = j] - x_hat_i x_hat_j / C)"""
    x, C = variables("x", (2, 3)), sympy.Integer(3)
    _, cache = F.rms_norm(x, row("gamma"), eps=EPS)
    x_hat, r = cache.x_hat[0], cache.rrms[0, 0]
    return x[0], x_hat, lambda i, j: r * (one_if(i == j) - x_hat[i] * x_hat[j] / C)


def relu():
    """1[i = j] 1[x_i > 0]"""
    x = row("x", is_signed=True)
    return x, F.relu(x)[0], lambda i, j: one_if(i == j) * one_if(x[i] > 0)


def gelu():
    """1[i = j] (Phi(x_i) + x_i phi(x_i))"""
    x = row("x")

    def entry(i, j):
        return one_if(i == j) * (names.named("normal_cdf", x[i]) + x[i] * names.RULES["normal_cdf"](None, x[i]))

    return x, with_exact_cdf(F.gelu)(x)[0], entry


def tanh():
    """1[i = j] (1 - y_i^2)"""
    x = row("x")
    y = F.tanh(x)[0]
    return x, y, lambda i, j: one_if(i == j) * (1 - y[i] ** 2)


def dropout():
    """1[i = j] m_i"""
    x = row("x")
    y, cache = F.dropout(x, 0.4, np.random.default_rng(2))
    return x, y, lambda i, j: one_if(i == j) * int(cache.keep[i]) * symbols.exact(cache.scale)


ROWS = (cross_entropy, dropout, gelu, layer_norm, relu, rms_norm, softmax, tanh, token_log_probs)


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_the_jacobian_in_the_docstring_is_the_derivative_of_the_code(make):
    printed = re.search(r"Jacobian +.+? = (.+?)(?:   |\n)", getattr(F, make.__name__).__doc__)[1]
    assert printed == make.__doc__
    with use_backend(symbols.Symbols("numpy")), symbols.comparisons_are(make in (layer_norm, rms_norm)):
        x, y, formula = make()
    for i, output in enumerate(y):
        for j, symbol in enumerate(x):
            entry = symbols.exact(formula(i, j))
            assert Gradient(output, [entry]).equals(symbol, entry), (i, j)


def test_every_jacobian_is_read_or_listed_with_a_reason():
    documented = {name for name in F.__all__ if "Jacobian  " in (getattr(F, name).__doc__ or "")}
    assert documented == {make.__name__ for make in ROWS} | NOT_READ.keys()
