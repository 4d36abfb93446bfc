"""One problem, solved twice: the same weights, inputs and upstream gradient through our layers and through PyTorch's.

A `Case` says how each side computes one output; a `Problem` holds the numbers; `solve_ours` and `solve_theirs` return
the output and the gradient of every input and every parameter, all by our names and in our layout. On PyTorch's side
our arrays are the leaves that autograd differentiates, so no gradient has to be renamed or transposed back.

Only `solve_theirs` imports torch. Everything else works without it.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.vocabulary import PAD
from tests.helpers import randomize, relative_error

BOUND = 1e-11  # on every relative error; the worst measured, on several sets of CPU kernels, is 1e-13


class Sizes(NamedTuple):
    """The length of every axis, by the library's letters."""

    B: int
    T: int
    S: int
    H: int
    D: int
    F: int
    V: int

    @property
    def C(self):
        return self.H * self.D

    def shape(self, letters):
        """The shape that letters such as "BTC" stand for."""
        return tuple(getattr(self, letter) for letter in letters)


def random_sizes(seed):
    """Sizes from 2 to 12, no two equal, with a d_model that is even, as the sinusoids need, and not too large."""
    rng = np.random.default_rng(seed)
    while True:
        sizes = Sizes(*(int(n) for n in rng.choice(np.arange(2, 13), len(Sizes._fields), replace=False)))
        if sizes.C % 2 == 0 and sizes.C <= 24 and sizes.C not in sizes:
            return sizes


class Case:
    """What one comparison compares. A subclass fills in the sides; the defaults suit a layer of ours."""

    inputs: ClassVar = {}  # {name: letters of its shape}: what enters and has a gradient
    output = "BTC"  # letters of its shape

    def __init__(self, name):
        self.name = name

    def constants(self, rng, z):
        """{name: array} of what enters and has no gradient: token ids and masks."""
        return {}

    def layer(self, z):
        """Our layer, of which every parameter will be replaced; one without any where the case is a pure function."""
        return Layer()

    def ours(self, layer, **arrays):
        """Our forward, with inputs and constants by their names -> output, cache."""
        return layer.forward(**arrays)

    def ours_backward(self, layer, dy, cache):
        """Our backward -> the gradients of `inputs` in their order: an array, a tuple of them, or None for none."""
        return layer.backward(dy, cache)

    def theirs(self, torch, z, p, **tensors):
        """The output as PyTorch computes it, from the parameters p, {our name: tensor of our shape}, and the rest."""
        raise NotImplementedError


class Problem(NamedTuple):
    """The numbers of one comparison. All floats are exact in float16, so that they can be stored in two bytes."""

    weights: dict  # by our names
    inputs: dict
    constants: dict
    dy: np.ndarray  # the upstream gradient, dLoss/doutput


class Solution(NamedTuple):
    """What both sides are asked for."""

    y: np.ndarray
    gradients: dict  # {name: dLoss/dname} for every input and every parameter


def draw(case, z, seed):
    """Order-one random numbers for every entry of a Problem, gamma, beta and biases included."""
    rng = np.random.default_rng(seed)
    weights = randomize(case.layer(z), seed, scale=0.4).state_dict()
    return Problem(
        {name: to_short_floats(weight) for name, weight in weights.items()},
        {name: to_short_floats(rng.standard_normal(z.shape(letters))) for name, letters in case.inputs.items()},
        case.constants(rng, z),
        to_short_floats(rng.standard_normal(z.shape(case.output))),
    )


def draw_ids(rng, B, length, V):
    """Random ids (B, length), padded with 0 at the end: the first row full, all others shorter."""
    lengths = np.append(length, rng.integers(1, length, size=B - 1))
    return np.where(np.arange(length) < lengths[:, None], rng.integers(1, V, size=(B, length)), PAD)


def to_short_floats(array):
    """The nearest numbers that float16 has, as float64."""
    return np.asarray(array).astype(np.float16).astype(np.float64)


def load_layer(case, z, weights):
    """Our layer with these weights."""
    layer = case.layer(z)
    layer.load_state_dict(weights)
    return layer


def solve_ours(case, z, problem):
    """Our output and gradients -> Solution."""
    layer = load_layer(case, z, problem.weights)
    y, cache = case.ours(layer, **problem.inputs, **problem.constants)
    dinputs = case.ours_backward(layer, problem.dy, cache)
    if not isinstance(dinputs, tuple):
        dinputs = () if dinputs is None else (dinputs,)
    gradients = dict(zip(case.inputs, dinputs, strict=True))
    return Solution(y, gradients | {name: parameter.grad for name, parameter in layer.named_parameters()})


def solve_theirs(case, z, problem):
    """PyTorch's output and gradients -> Solution. Autograd refuses a leaf that was not used: none is forgotten."""
    import torch

    weights, inputs = (leaves(torch, arrays) for arrays in (problem.weights, problem.inputs))
    constants = {name: torch.tensor(array) for name, array in problem.constants.items()}
    y = case.theirs(torch, z, weights, **inputs, **constants)
    variables = inputs | weights
    gradients = torch.autograd.grad(y, list(variables.values()), torch.tensor(problem.dy))
    return Solution(y.detach().numpy(), {name: g.numpy() for name, g in zip(variables, gradients, strict=True)})


def leaves(torch, arrays):
    """Copies of arrays as the variables that autograd differentiates by."""
    return {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}


def errors(case, z, got, expected):
    """{name: relative error} of the output and of all gradients, after proof that none is missing on either side."""
    wanted = set(case.inputs) | {name for name, _ in case.layer(z).named_parameters()}
    assert set(got.gradients) == wanted
    assert set(expected.gradients) == wanted
    named = {name: relative_error(got.gradients[name], expected.gradients[name]) for name in wanted}
    return {"output": relative_error(got.y, expected.y)} | named


def assert_all_within(bound, named_errors, title, record_property):
    """AssertionError unless every error is at most `bound`; the worst is recorded, and printed under `pytest -s`."""
    assert named_errors
    assert not any(math.isnan(error) for error in named_errors.values())
    worst = max(named_errors, key=named_errors.get)
    record_property("worst_relative_error", named_errors[worst])
    print(f"\n{title:52} worst of {len(named_errors):3}: {named_errors[worst]:.1e} {worst}", end="")
    assert named_errors[worst] <= bound, {name: e for name, e in named_errors.items() if e > bound}
