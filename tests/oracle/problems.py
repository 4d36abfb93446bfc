"""One problem, solved twice: the same weights, inputs and upstream gradient through our layers and through PyTorch's.

What is compared are subjects of the gradient checks without their dropout. `Numbers` are what enters; `solve_ours` and
`solve_theirs` return the output and the gradient of every input and every parameter, all by our names and in our
layout. On PyTorch's side our arrays are the leaves that autograd differentiates with respect to, so no gradient has to
be renamed or transposed back.

Only `solve_theirs` imports torch. Everything else works without it.
"""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.gradcheck.subjects import SUBJECTS, Sizes
from minitransformer.vocabulary import PAD
from tests.helpers import relative_error
from tests.oracle.cases import PARITY

BOUND = 1e-11  # on every relative error; the worst measured is 8e-13


def random_sizes(seed):
    """Sizes from 2 to 12, no two equal, with a d_model that is even, as the sinusoids need, and not too large."""
    rng = np.random.default_rng(seed)
    while True:
        sizes = Sizes(*(int(n) for n in rng.choice(np.arange(2, 13), len(Sizes._fields), replace=False)))
        if sizes.C % 2 == 0 and sizes.C <= 24 and sizes.C not in sizes:
            return sizes


class Numbers(NamedTuple):
    """The numbers of one comparison. All floats are exact in float16, so that they can be stored in two bytes."""

    weights: dict  # by our names
    inputs: dict
    constants: dict  # ids and masks
    dy: np.ndarray  # the upstream gradient, dLoss/doutput


class Solution(NamedTuple):
    """What both sides are asked for."""

    y: np.ndarray
    gradients: dict  # {name: dLoss/dname} for every input and every parameter


def build(name, n, rng=None):
    """The Problem of a subject, without dropout."""
    return SUBJECTS[name].without_dropout().build(n, rng)


def draw(name, n, seed):
    """Order-one random numbers for a subject."""
    rng = np.random.default_rng(seed)
    problem = build(name, n, rng)
    weights = {key: to_short_floats(parameter.data) for key, parameter in problem.parameters.items()}
    inputs = {key: to_short_floats(x) for key, x in problem.inputs.items()}
    constants = {key: array for key, array in problem.constants.items() if array is not None}
    y, _ = problem.forward(*inputs.values())
    return Numbers(weights, inputs, constants, to_short_floats(rng.standard_normal(np.shape(y))))


def draw_ids(rng, B, length, V):
    """Random ids (B, length), padded with 0 at the end: the first row full, all others shorter."""
    lengths = np.append(length, rng.integers(1, length, size=B - 1))
    return np.where(np.arange(length) < lengths[:, None], rng.integers(1, V, size=(B, length)), PAD)


def to_short_floats(array):
    """The nearest numbers that float16 has, as float64."""
    return np.asarray(array).astype(np.float16).astype(np.float64)


def load(name, n, weights):
    """The Problem of a subject with these weights."""
    problem = build(name, n)
    assert weights.keys() == problem.parameters.keys()
    for key, parameter in problem.parameters.items():
        parameter.data[...] = weights[key]
    return problem


def solve_ours(name, n, numbers):
    """Our output and gradients -> Solution."""
    problem = load(name, n, numbers.weights)
    constants = {key: numbers.constants.get(key) for key in problem.constants}
    y, cache = problem._replace(constants=constants).forward(*(numbers.inputs[key] for key in problem.inputs))
    return Solution(y, problem.gradients(numbers.dy, cache))


def solve_theirs(name, n, numbers):
    """PyTorch's output and gradients -> Solution. Autograd refuses a leaf that was not used: none is forgotten."""
    import torch

    weights, inputs = (leaves(torch, arrays) for arrays in (numbers.weights, numbers.inputs))
    constants = {key: torch.tensor(array) for key, array in numbers.constants.items()}
    y = PARITY[name](torch, n, SUBJECTS[name].switches, weights, **inputs, **constants)
    variables = inputs | weights
    gradients = torch.autograd.grad(y, list(variables.values()), torch.tensor(numbers.dy))
    return Solution(y.detach().numpy(), {key: g.numpy() for key, g in zip(variables, gradients, strict=True)})


def leaves(torch, arrays):
    """Copies of arrays as the variables that autograd differentiates with respect to."""
    return {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}


def errors(got, expected):
    """{name: relative error} of the output and of all gradients, after proof that none is missing on either side."""
    assert got.gradients.keys() == expected.gradients.keys()
    named = {name: relative_error(gradient, expected.gradients[name]) for name, gradient in got.gradients.items()}
    return {"output": relative_error(got.y, expected.y)} | named


def assert_all_within(bound, named_errors, title, record_property):
    """AssertionError unless every error is at most `bound`; the worst is recorded, and printed under `pytest -s`."""
    assert named_errors
    assert not any(math.isnan(error) for error in named_errors.values())
    worst = max(named_errors, key=named_errors.get)
    record_property("worst_relative_error", named_errors[worst])
    print(f"\n{title:52} worst of {len(named_errors):3}: {named_errors[worst]:.1e} {worst}", end="")
    assert named_errors[worst] <= bound, {name: e for name, e in named_errors.items() if e > bound}
