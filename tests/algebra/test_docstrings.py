"""Proves the "Jacobian" lines of the docstrings that speak of one row: as printed, they are the derivative of the code.

The formula is read from the docstring, so a misprint fails. The lines "Chain" are not read: they are what the backward
functions compute, which test_pairs.py proves.
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
TOKEN = re.compile(r"1\[(?P<condition>[^]]*)\]|(?P<name>[A-Za-z]\w*)|(?P<number>\d+)|(?P<sign>[-+*/^()])|(?P<space> +)")
SIGNS = {"^": "**"}


def jacobian(function):
    """(output, its index, input, its index, formula) of the first formula in the line "Jacobian"."""
    text = re.search(r"Jacobian +(.+?)(?:   |\n)", function.__doc__)[1]
    left, formula = text.split(" = ", 1)
    return (*re.fullmatch(r"d\(?(.+?)_(\w)\)?/d(\w+)_(\w)", left).groups(), formula)


def python_of(formula):
    """The formula in Python: x_i is x[i], a condition in brackets is 1 or 0, and neighbours are multiplied."""
    parts, ends_operand, has_space = [], False, False
    for token in TOKEN.finditer(formula):
        if token["space"]:
            has_space = True
            continue
        is_call = token[0] == "(" and parts and parts[-1].isidentifier() and not has_space
        if ends_operand and (token["sign"] in (None, "(")) and not is_call:
            parts.append("*")
        parts.append(_python_of_token(token))
        ends_operand, has_space = token["sign"] in (None, ")"), False
    return "".join(parts)


def _python_of_token(token):
    if token["condition"]:
        left, sign, right = token["condition"].split()
        return f"one_if({python_of(left)} {sign.replace('=', '==')} {python_of(right)})"
    if token["name"]:
        return re.sub(r"_([a-z])$", r"[\1]", token["name"])
    return SIGNS.get(token[0], token[0])


def row(name, is_signed=False):
    return variables(name, Signed((3,)) if is_signed else (3,))


def softmax():
    s = row("s")
    p, _ = F.softmax(s)
    return s, p, {"p": p}


def cross_entropy():
    z = row("z")
    _, cache = F.cross_entropy(z, symbols.wrap(np.array(1)))
    return z, np.log(cache.p[0]), {"p": cache.p[0]}


def token_log_probs():
    z = row("z")
    _, cache = F.token_log_probs(z, symbols.wrap(np.array(1)), symbols.wrap(np.array(True)))
    return z, np.log(cache.p[0]), {"p": cache.p[0]}


def layer_norm():
    x = variables("x", (2, 3))
    _, cache = F.layer_norm(x, row("gamma"), row("beta"), eps=EPS)
    return x[0], cache.x_hat[0], {"x_hat": cache.x_hat[0], "r": cache.rstd[0, 0], "C": sympy.Integer(3)}


def rms_norm():
    x = variables("x", (2, 3))
    _, cache = F.rms_norm(x, row("gamma"), eps=EPS)
    return x[0], cache.x_hat[0], {"x_hat": cache.x_hat[0], "r": cache.rrms[0, 0], "C": sympy.Integer(3)}


def relu():
    x = row("x", is_signed=True)
    return x, F.relu(x)[0], {"x": x}


def gelu():
    x = row("x")
    letters = {"Phi": lambda a: names.named("normal_cdf", a), "phi": lambda a: names.RULES["normal_cdf"](None, a)}
    return x, with_exact_cdf(F.gelu)(x)[0], {"x": x, **letters}


def tanh():
    x = row("x")
    return x, F.tanh(x)[0], {"y": F.tanh(x)[0]}


def dropout():
    x = row("x")
    y, cache = F.dropout(x, 0.4, np.random.default_rng(2))
    return x, y, {"m": [int(kept) * symbols.exact(cache.scale) for kept in cache.keep]}


ROWS = (cross_entropy, dropout, gelu, layer_norm, relu, rms_norm, softmax, tanh, token_log_probs)


def wrong_entries(make, formula, index_y, index_x):
    """The entries (i, j) of the Jacobian in which the formula differs from the derivative."""
    with use_backend(symbols.Symbols("numpy")), symbols.comparisons_are(make in (layer_norm, rms_norm)):
        x, y, letters = make()
    code, wrong = python_of(formula), []
    for i, output in enumerate(y):
        for j, symbol in enumerate(x):
            scope = {**letters, "one_if": lambda holds: int(bool(holds)), index_y: i, index_x: j}
            entry = symbols.exact(eval(code, {}, scope))
            if not Gradient(output, [entry]).equals(symbol, entry):
                wrong.append((i, j))
    return wrong


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_the_jacobian_in_the_docstring_is_the_derivative_of_the_code(make):
    _, index_y, _, index_x, formula = jacobian(getattr(F, make.__name__))
    assert wrong_entries(make, formula, index_y, index_x) == []


def test_every_jacobian_is_read_or_listed_with_a_reason():
    documented = {name for name in F.__all__ if "Jacobian  " in (getattr(F, name).__doc__ or "")}
    assert documented == {make.__name__ for make in ROWS} | NOT_READ.keys()
