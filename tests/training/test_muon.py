"""Muon against the published algorithm written out, and against Adam for the rest; what becomes of singular values."""

import copy

import numpy as np
import pytest

from minitransformer.config import Experts
from minitransformer.models import BERT, GPT, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig, bert_config
from minitransformer.system.process import ThreadTeam
from minitransformer.training import Adam, Muon
from minitransformer.training.muon import matrices_in_layers, newton_schulz
from tests.helpers import device, host, relative_error, same

SIZES = {"d_model": 8, "num_heads": 4, "d_ff": 20, "num_layers": 2, "max_len": 6, "dropout": 0.0}
MODERN = {"activation": "swiglu", "num_kv_heads": 2, "normalization": "rms"}
RATES = (0.1, 0.3, 0.05, 0.2)


def gpt(seed=0, **changes):
    return GPT(TransformerConfig(11, **{**SIZES, **changes}), seed=seed, dtype=np.float64)


def give_gradients(model, rng):
    for parameter in model.parameters():
        parameter.grad[...] = device(rng.standard_normal(parameter.data.shape))


def trained(model, optimizer, rates=RATES, seed=1, scale=1.0):
    """The weights after steps with random gradients, by name."""
    rng = np.random.default_rng(seed)
    for lr in rates:
        give_gradients(model, rng)
        optimizer.lr = lr
        optimizer.step(scale=scale)
    return model.state_dict()


def test_five_iterations_map_all_of_001_to_1_onto_the_interval_and_no_more():
    s = np.geomspace(0.01, 1.0, 300)
    found = np.array([host(newton_schulz(device(np.array([[x, 0.0], [0.0, (1 - x * x) ** 0.5]])))[0, 0]) for x in s])
    assert found.min() == pytest.approx(0.682, abs=1e-3)
    assert found.max() == pytest.approx(1.134, abs=1e-3)


def test_a_thousandth_becomes_047_and_zero_stays_zero():
    X = host(newton_schulz(device(np.diag([1.0, 0.001, 0.0]))))
    assert X[1, 1] == pytest.approx(0.47, abs=0.005)
    assert X[2, 2] == 0
    assert not host(newton_schulz(device(np.zeros((3, 4))))).any()


def published_step(W, gradient, mean, lr, weight_decay):
    """One step of github.com/KellerJordan/Muon for W (out, in), in its own precision instead of bfloat16 -> W, mean."""
    mean = 0.95 * mean + 0.05 * gradient
    X = 0.05 * gradient + 0.95 * mean
    if len(W) > W.shape[1]:
        X = X.T
    X = X / (np.linalg.norm(X) + 1e-7)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    if len(W) > W.shape[1]:
        X = X.T
    return W * (1 - lr * weight_decay) - lr * max(1, len(W) / W.shape[1]) ** 0.5 * X, mean


def single_matrices(name, array):
    """The matrices of the published models, (in, out), that are side by side in a parameter of the MODERN model."""
    widths = {"qkv.W": [8, 4, 4], "expand.W": [20, 20]}.get(".".join(name.split(".")[-2:]), [array.shape[1]])
    return np.split(array, np.cumsum(widths)[:-1], axis=1)


def test_steps_are_those_of_the_published_algorithm_and_of_adam_for_the_rest():
    model, twin, rng = gpt(**MODERN), gpt(**MODERN), np.random.default_rng(1)
    others = {name: p for name, p in twin.named_parameters() if "layers" not in name or p.data.ndim != 2}
    theirs = Adam(others.values(), weight_decay=0.3)
    matrices = {
        name: [part.T for part in single_matrices(name, array)]
        for name, array in model.state_dict().items()
        if name not in others
    }
    means = {name: [np.zeros_like(part) for part in parts] for name, parts in matrices.items()}
    for lr in RATES:
        theirs.lr = lr
        for name, parameter in model.named_parameters():
            gradient = rng.standard_normal(parameter.data.shape)
            if name in others:
                others[name].grad[...] = device(gradient)
                continue
            for i, part in enumerate(single_matrices(name, gradient)):
                matrices[name][i], means[name][i] = published_step(
                    matrices[name][i], part.T, means[name][i], 3.0 * lr, 0.3
                )
        theirs.step()
    got = trained(model, Muon(model, weight_decay=0.3, ratio=3.0))
    assert len(matrices) == 8
    for name, array in got.items():
        wanted = host(others[name].data) if name in others else np.hstack([W.T for W in matrices[name]])
        assert relative_error(array, wanted) < 1e-12, name


def test_the_matrices_are_those_in_the_layers_and_fused_ones_are_taken_apart():
    models = {
        "gpt": gpt(),
        "modern": gpt(**MODERN),
        "shared": gpt(share_layers=True),
        "transformer": Transformer(TransformerConfig(11, **SIZES, num_kv_heads=1), seed=0),
        "bert": BERT(bert_config(11, **SIZES), seed=0),
        "qk_norm": gpt(num_kv_heads=2, qk_norm=True),
        "experts": gpt(experts=Experts(2, per_token=1)),
    }
    found = {name: [widths for _, widths in matrices_in_layers(model)] for name, model in models.items()}
    assert found["gpt"] == found["bert"] == 2 * [[8, 8, 8], [8], [20], [8]]
    assert found["modern"] == 2 * [[8, 4, 4], [8], [20, 20], [8]]
    assert found["qk_norm"] == 2 * [[8, 4, 4], [8], [20], [8]]
    assert found["experts"] == 2 * [[8, 8, 8], [8], [2], [20], [8], [20], [8]]
    assert found["shared"] == [[8, 8, 8], [8], [20], [8]]
    assert found["transformer"] == 2 * [[8, 2, 2], [8], [20], [8]] + 2 * [[8, 2, 2], [8], [8], [2, 2], [8], [20], [8]]


def test_a_model_without_such_layers_learns_as_with_adam():
    config = Seq2SeqConfig(9, d_model=6, hidden_size=6, num_layers=1, max_len=5, dropout=0.0)
    after = []
    for make in (Muon, lambda model: Adam(model.parameters())):
        model = Seq2Seq(config, seed=0, dtype=np.float64)
        after.append(trained(model, make(model)))
    assert all(same(after[0][name], array) for name, array in after[1].items())


def test_training_goes_on_from_a_saved_state_with_the_same_bits():
    whole = gpt(**MODERN)
    optimizer = Muon(whole)
    trained(whole, optimizer, rates=RATES[:2], seed=3)
    saved, weights = copy.deepcopy(optimizer.state()), whole.state_dict()
    expected = trained(whole, optimizer, seed=4)
    other = gpt(seed=5, **MODERN)
    other.load_state_dict(weights)
    resumed = Muon(other)
    resumed.load_state(*saved)
    got = trained(other, resumed, seed=4)
    assert all(same(got[name], array) for name, array in expected.items())
    assert resumed.t == 6


def test_the_state_of_another_model_is_refused():
    arrays, facts = Muon(gpt()).state()
    with pytest.raises(ValueError, match=r"muon\.0 must be of shape \(8, 24\), got \(8, 4\)"):
        Muon(gpt()).load_state({**arrays, "muon.0": np.zeros((8, 4))}, facts)


def test_threads_that_share_the_matrices_change_no_bit():
    after = []
    for size in (1, 3):
        model = gpt()
        optimizer = Muon(model)
        optimizer.team = ThreadTeam(size)
        after.append(trained(model, optimizer))
    assert all(same(after[0][name], array) for name, array in after[1].items())


def test_a_scaled_step_is_that_of_the_scaled_gradient():
    after = []
    for size, scale in ((1.0, 0.25), (0.25, 1.0)):
        model, rng = gpt(), np.random.default_rng(2)
        optimizer = Muon(model)
        for t in range(3):
            give_gradients(model, rng)
            for parameter in model.parameters():
                parameter.grad *= size * 10.0**t
            optimizer.step(scale=scale)
        after.append(model.state_dict())
    for name, array in after[0].items():
        assert relative_error(array, after[1][name]) < 1e-12, name


def test_frozen_matrices_stay_and_all_weights_are_one_vector():
    model = gpt()
    model.freeze("blocks.layers.0", "embedding")
    before = model.state_dict()
    optimizer = Muon(model)
    after = trained(model, optimizer)
    moved = {name for name, array in after.items() if not same(array, before[name])}
    assert moved == {name for name in after if not name.startswith(("blocks.layers.0", "embedding"))}
    optimizer.weights[...] = 3.0
    assert all((parameter.data == 3.0).all() for parameter in model.parameters() if not parameter.frozen)


def test_a_step_that_an_error_ended_among_the_matrices_refuses_the_next():
    model = gpt()
    optimizer = Muon(model)
    optimizer.means[3] = optimizer.means[3][:, 1:]
    with pytest.raises(ValueError, match="broadcast"):
        optimizer.step()
    with pytest.raises(RuntimeError, match="interrupted"):
        optimizer.step()


@pytest.mark.parametrize("momentum", [1.0, -0.1])
def test_a_momentum_outside_0_to_1_is_refused(momentum):
    with pytest.raises(ValueError, match=r"^momentum must be at least 0 and less than 1, got "):
        Muon(gpt(), momentum=momentum)
