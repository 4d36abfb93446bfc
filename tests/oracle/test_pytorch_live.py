"""Proves that our layers, optimiser and training compute what PyTorch's do, run side by side on random numbers.

Everything is in float64 without dropout, as the two draw different random numbers. Skipped where torch is missing;
`test_pytorch_reference` compares with stored values then. The worst errors are printed by `pytest -s`.
"""

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.subjects.layers import config
from minitransformer.interop.pytorch import from_pytorch, to_pytorch
from minitransformer.models import Transformer
from minitransformer.training import Adam, clip_grad_norm
from tests.helpers import relative_error
from tests.oracle import torch_modules, training
from tests.oracle.cases import PARITY, REFERENCE_SIZES
from tests.oracle.problems import (
    BOUND,
    assert_all_within,
    draw,
    draw_ids,
    errors,
    random_sizes,
    solve_ours,
    solve_theirs,
)

torch = pytest.importorskip("torch")

N = REFERENCE_SIZES
SHAPES = {"W": (5, 3), "b": (3,), "E": (7, 4)}


@pytest.mark.parametrize("name", PARITY)
@pytest.mark.parametrize(
    "n",
    [REFERENCE_SIZES, *(pytest.param(random_sizes(seed), marks=pytest.mark.exhaustive) for seed in (2, 11))],
    ids=lambda n: "x".join(map(str, n)),
)
def test_output_and_every_gradient_equal_those_of_pytorch(name, n, record_property):
    numbers = draw(name, n, seed=sum(n))
    found = errors(solve_ours(name, n, numbers), solve_theirs(name, n, numbers))
    assert_all_within(BOUND, found, name, record_property)


def test_adam_takes_the_steps_of_pytorchs_adam(record_property):
    rng = np.random.default_rng(0)
    ours = {name: Parameter(rng.standard_normal(shape)) for name, shape in SHAPES.items()}
    theirs = {name: torch.tensor(parameter.data, requires_grad=True) for name, parameter in ours.items()}
    our_adam = Adam(ours.values(), betas=(0.9, 0.98), eps=1e-9)
    their_adam = torch.optim.Adam(theirs.values(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 21):
        for name, parameter in ours.items():
            gradient = rng.standard_normal(SHAPES[name]) * 10.0 ** rng.integers(-8, 3)  # down to the size of eps
            gradient[0] = 0.0 if step < 10 else gradient[0]  # as of a token that comes late
            parameter.grad[...] = gradient
            theirs[name].grad = torch.tensor(gradient)
        our_adam.lr = their_adam.param_groups[0]["lr"] = 0.3 / step
        our_adam.step()
        their_adam.step()
    found = {name: relative_error(ours[name].data, theirs[name].detach()) for name in SHAPES}
    assert_all_within(BOUND, found, "Adam, 20 steps", record_property)


@pytest.mark.parametrize("max_norm", [0.3, 1e3, float("inf")])
def test_clipping_scales_as_pytorchs_does_and_returns_the_same_norm(max_norm, record_property):
    rng = np.random.default_rng(0)
    ours = {name: Parameter(np.zeros(shape)) for name, shape in SHAPES.items()}
    theirs = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in SHAPES.items()}
    for name, parameter in ours.items():
        parameter.grad[...] = rng.standard_normal(SHAPES[name])
        theirs[name].grad = torch.tensor(parameter.grad)
    our_norm = clip_grad_norm(list(ours.values()), max_norm)
    their_norm = torch.nn.utils.clip_grad_norm_(theirs.values(), max_norm)
    found = {name: relative_error(ours[name].grad, theirs[name].grad) for name in SHAPES}
    found["norm"] = relative_error(our_norm, their_norm)
    assert_all_within(BOUND, found, f"clipping to {max_norm}", record_property)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_ten_training_steps_equal_those_of_pytorch(seed, record_property):
    start = training.draw_start(seed)
    expected = training.train_theirs(start)
    found = training.run_errors(training.train_ours(start), expected)
    assert_all_within(BOUND, found, "ten training steps", record_property)


def test_the_training_loop_does_what_pytorch_does(record_property):
    start = training.draw_start(seed=4)
    expected = training.train_theirs(start)
    found = training.run_errors(training.train_with_our_loop(start), expected)
    assert_all_within(BOUND, found, "ten training steps, our loop", record_property)


def random_transformer(**switches):
    """Our Transformer with order-one weights."""
    model = Transformer(config(N, **switches), seed=None, dtype=np.float64)
    randomize_parameters(model)
    return model


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("final_norm", [True, False])
def test_a_transformer_of_pytorchs_gives_the_same_output_with_its_weights_loaded_into_ours(norm, final_norm):
    model = random_transformer(norm=norm, final_norm=final_norm)
    rng = np.random.default_rng(0)
    source, target = draw_ids(rng, N.B, N.S, N.V), draw_ids(rng, N.B, N.T, N.V)
    theirs = torch_modules.transformer_module(torch, model.config)
    torch.manual_seed(0)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.4)  # PyTorch starts with b = 0 and gamma = 1, which hide mistakes
    model.load_state_dict(model.state_dict() | from_pytorch(theirs.state_dict(), model.config))
    x, y = rng.standard_normal((N.B, N.S, N.C)), rng.standard_normal((N.B, N.T, N.C))
    memory = model.encoder(x, padding_mask(source))
    got = model.decoder(y, memory, causal_mask(N.T) & padding_mask(target), padding_mask(source))
    masks = torch_modules.stack_masks(torch, torch.tensor(source), torch.tensor(target))
    expected = theirs(torch.tensor(x), torch.tensor(y), **masks)
    assert relative_error(got, expected.detach()) <= BOUND


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_pytorchs_transformer_loads_our_weights_under_just_its_own_names(norm):
    model = random_transformer(norm=norm, final_norm=True, tie_embeddings=False)
    theirs = torch_modules.transformer_module(torch, model.config)
    state = to_pytorch(model.state_dict(), model.config)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()}, strict=True)
    again = from_pytorch(theirs.state_dict(), model.config)
    assert again
    assert all(np.array_equal(array, model.state_dict()[name]) for name, array in again.items())
