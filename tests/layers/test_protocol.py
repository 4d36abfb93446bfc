"""What every layer must keep: uses that add up, and sequences of a batch that know nothing of each other.

The layers are those of the gradient checks, with masks and dropout on. That their gradients are exact, keep the dtype
and leave all inputs as they were is tested there and in `test_properties`.
"""

import numpy as np
import pytest

from minitransformer.gradcheck.subjects import SUBJECTS
from tests.helpers import device, host, random_array, same

LAYERS = {
    name: subject
    for name, subject in SUBJECTS.items()
    if subject.covers.__module__.startswith("minitransformer.layers.")
}
PROBLEMS = {name: subject.build() for name, subject in LAYERS.items()}
WITH_PARAMETERS = [name for name, problem in PROBLEMS.items() if problem.parameters]
# a batch of two sequences at least, whose output depends on the input; products of more or fewer tokens, as those of an
# expert are, differ in the last bit (see test_experts.py)
LEFT_OUT = ("B=1", "mask=nothing", "MixtureOfExperts")
WITH_INPUTS = [
    name for name, problem in PROBLEMS.items() if problem.inputs and not any(word in name for word in LEFT_OUT)
]


def rows(names):
    """The names as parameters: by default the last row of each group, which has most switches on."""
    last = {LAYERS[name].group: name for name in names}.values()
    return [pytest.param(name, marks=() if name in last else pytest.mark.exhaustive) for name in names]


def draw_inputs(problem, seed):
    """Other inputs than the problem's own."""
    rng = np.random.default_rng(seed)
    return [random_array(rng, *x.shape) for x in problem.inputs.values()]


def use(problem, inputs, seed):
    """One forward pass, and a random upstream gradient for it -> (dy, cache)."""
    y, cache = problem.forward(*inputs)
    return random_array(np.random.default_rng(seed), *y.shape), cache


def parameter_gradients(problem):
    return {name: np.array(host(parameter.grad)) for name, parameter in problem.parameters.items()}


@pytest.mark.parametrize("name", rows(WITH_PARAMETERS))
def test_a_layer_used_twice_gets_the_sum_of_both_gradients(name):
    once, again, twice = (LAYERS[name].build() for _ in range(3))
    first, second = draw_inputs(once, seed=53), draw_inputs(once, seed=54)
    once.backward(*use(once, first, seed=55))
    again.backward(*use(again, second, seed=56))
    uses = use(twice, first, seed=55), use(twice, second, seed=56)  # both before any backward
    for dy, cache in uses:
        twice.backward(dy, cache)
    a, b, both = (parameter_gradients(problem) for problem in (once, again, twice))
    for tensor, gradient in both.items():
        assert same(gradient, a[tensor] + b[tensor]), tensor
    assert any(np.abs(gradient).max() > 0 for gradient in a.values())


@pytest.mark.parametrize("name", rows(WITH_INPUTS))
def test_an_output_depends_on_its_own_row_of_the_batch_alone(name):
    problem = LAYERS[name].build()
    inputs, others = draw_inputs(problem, seed=58), draw_inputs(problem, seed=59)
    for i, x in enumerate(inputs):
        others[i] = device(np.concatenate([host(x)[:1], host(others[i])[1:]]))
    y, changed = problem.forward(*inputs)[0], problem.forward(*others)[0]
    assert same(changed[0], y[0])
    assert not same(changed[1], y[1])
