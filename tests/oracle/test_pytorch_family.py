"""Proves that the other activations and normalisation compute what PyTorch's do; skipped where torch is missing."""

import numpy as np
import pytest

from minitransformer.functional import gelu, gelu_tanh, silu
from minitransformer.functional.erf import erf
from tests.oracle.cases import REFERENCE_SIZES
from tests.oracle.family_cases import FAMILY_CASES, their_activation
from tests.oracle.problems import assert_all_within, draw, errors, random_sizes, solve_ours, solve_theirs

torch = pytest.importorskip("torch")

BOUND = 1e-12
SIZES = [REFERENCE_SIZES, *map(random_sizes, (1, 2))]


@pytest.mark.parametrize("z", SIZES, ids=lambda z: "x".join(map(str, z)))
@pytest.mark.parametrize("name", FAMILY_CASES)
def test_output_and_every_gradient_equal_those_of_pytorch(name, z, record_property):
    case = FAMILY_CASES[name]
    problem = draw(case, z, seed=sum(z))
    found = errors(case, z, solve_ours(case, z, problem), solve_theirs(case, z, problem))
    assert_all_within(BOUND, found, name, record_property)


@pytest.mark.parametrize("function", [gelu, gelu_tanh, silu], ids=lambda function: function.__name__)
def test_in_float32_each_entry_is_as_near_to_the_exact_one_as_pytorchs(function):
    """Nobody knows the last digit in float32; ours may be a few units further from it than PyTorch's, no more."""
    x = np.linspace(-8.0, 8.0, 4001, dtype=np.float32)
    exact = their_activation(torch, function.__name__, torch.tensor(x, dtype=torch.float64)).numpy()
    theirs = their_activation(torch, function.__name__, torch.tensor(x)).numpy()
    ours, _ = function(x)
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max() + 4 * np.spacing(np.float32(1.0))


def test_erf_is_that_of_pytorch():
    x = np.linspace(-7.0, 7.0, 2001)
    assert np.abs(erf(x) - torch.erf(torch.tensor(x)).numpy()).max() <= 4 * np.spacing(0.5)
