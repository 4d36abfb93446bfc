"""Proves the "Jacobian" lines of the docstrings that speak of one row: they are the derivative of the code.

Each function below returns the input, the output, and what the letters of the printed formula stand for, which is then
computed for each entry (i, j). The lines "Chain" are what the backward functions compute, which test_pairs.py proves.
"""

import re
from functools import partial

import numpy as np
import pytest
import sympy

from minitransformer import functional as F
from minitransformer.backend import use_backend
from minitransformer.functional.since_2017.activations import ACTIVATIONS
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


def as_python(formula):
    """A formula of a docstring as an expression: x_i becomes x[i], a gap between two factors *, and so on."""
    formula = re.sub(r"1\[(.+?)\]", r"one_if(\1)", formula).replace(" = ", " == ").replace("^", "**")
    formula = re.sub(r"\|(.+?)\|", r"abs(\1)", re.sub(r"(\w+)_([ij])\b", r"\1[\2]", formula))
    return re.sub(r"(?<=[\w\])]) (?=[\w(])", " * ", formula)


def row(name, is_signed=False):
    return variables(name, Signed((3,)) if is_signed else (3,))


def one_if(holds):
    return int(bool(holds))


def with_names(expression):
    """An expression as the library's are on symbols: reciprocals of sums have names."""
    expression = symbols.exact(expression)
    return expression.replace(lambda part: part.is_Pow and part.exp < 0, lambda part: names.reciprocal(1 / part))


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
    x_hat = cache.x_hat[0]
    return x[0], x_hat, {"x_hat": x_hat, "r": cache.rstd[0, 0], "C": sympy.Integer(3)}


def rms_norm():
    x = variables("x", (2, 3))
    _, cache = F.rms_norm(x, row("gamma"), eps=EPS)
    x_hat = cache.x_hat[0]
    return x[0], x_hat, {"x_hat": x_hat, "r": cache.rrms[0, 0], "C": sympy.Integer(3)}


def gelu():
    x = row("x")
    Phi, phi = (lambda a: names.named("normal_cdf", a)), (lambda a: names.RULES["normal_cdf"](None, a))
    return x, with_exact_cdf(F.gelu)(x)[0], {"x": x, "Phi": Phi, "phi": phi}


def dropout():
    x = row("x")
    y, cache = F.dropout(x, 0.4, np.random.default_rng(2))
    return x, y, {"m": [int(keep) * symbols.exact(cache.scale) for keep in cache.keep]}


def activation(name):
    x = row("x", is_signed=True)
    y = getattr(F, name)(x)[0]
    return x, y, {"x": x, "y": y}


def documented():
    """The functions whose docstring has a Jacobian."""
    return {name for name in F.__all__ if "Jacobian  " in (getattr(F, name).__doc__ or "")}


ROWS = {each.__name__: each for each in (cross_entropy, dropout, layer_norm, rms_norm, softmax, token_log_probs)}
ROWS |= {name: partial(activation, name) for name in (*ACTIVATIONS, "tanh") if name in documented() - NOT_READ.keys()}
ROWS["gelu"] = gelu


@pytest.mark.parametrize("name", ROWS)
def test_the_jacobian_in_the_docstring_is_the_derivative_of_the_code(name):
    printed = as_python(re.search(r"Jacobian +.+? = (.+?)(?:   |\n)", getattr(F, name).__doc__)[1])
    with use_backend(symbols.Symbols("numpy")), symbols.comparisons_are(name in ("layer_norm", "rms_norm")):
        x, y, letters = ROWS[name]()
    try:
        formula = compile(printed, name, "eval")
    except SyntaxError:
        pytest.fail(f"{printed}: say it with {', '.join(letters)} alone, or list {name} in NOT_READ, with the reason")
    for i, output in enumerate(y):
        for j, symbol in enumerate(x):
            entry = with_names(eval(formula, {**letters, "i": i, "j": j, "one_if": one_if}))
            assert Gradient(output, [entry]).equals(symbol, entry), (printed, i, j)


def test_every_jacobian_is_read_or_listed_with_a_reason():
    assert documented() == ROWS.keys() | NOT_READ.keys()
