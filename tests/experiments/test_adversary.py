"""The adversary: the gradient into attention weights by the complex step, and weights that move without an effect."""

import numpy as np
import pytest

from experiments import adversary
from experiments.measuring import taps
from minitransformer.data import get_task
from minitransformer.layers.attention import FullAttention
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from tests.helpers import complex_step, random_host_array, randomize


def test_a_tap_adds_the_gradient_of_the_weights_to_that_of_queries_and_keys():
    rng = np.random.default_rng(0)
    q, k, v = (random_host_array(rng, *shape).astype(complex) for shape in ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)))
    pull, dy = random_host_array(rng, 2, 1, 4, 6), random_host_array(rng, 2, 3, 4, 7)
    tap = taps.Tap(FullAttention())
    tap.pull = pull

    def loss():
        s = q @ k.swapaxes(-1, -2) / 5**0.5
        p = np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)
        return (p @ v * dy).sum() + (p * pull).sum()

    y, cache = tap.forward(q.real, k.real, v.real)
    assert y.shape == dy.shape
    for x, dx in zip((q, k, v), tap.backward(dy, cache)[:3], strict=True):
        np.testing.assert_allclose(dx, complex_step(loss, x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("keys", "features", "sharp"), [(9, 4, 1.0), (30, 5, 2.0)])
def test_moved_weights_are_the_optimum_of_the_linear_program(keys, features, sharp):
    rng = np.random.default_rng(keys)
    for _ in range(5):
        p = np.exp(sharp * rng.normal(size=keys))
        p, v = p / p.sum(), rng.normal(size=(keys, features))
        q = taps.moved(p, v)
        A = np.column_stack([v, np.ones(keys)])
        np.testing.assert_allclose(q @ A, p @ A, atol=1e-12)
        assert q.min() >= 0
        # duality: a y with A y <= cost and y (p A) = the optimum exists only if nothing is better
        cost = np.eye(keys)[p.argmax()]
        held = q > 1e-12
        y = np.linalg.lstsq(A[held], cost[held], rcond=None)[0]
        assert (A @ y <= cost + 1e-7).all()
        assert p @ A @ y == pytest.approx(q[p.argmax()], abs=1e-7)


def test_no_weight_moves_where_there_are_no_more_keys_than_features_and_one():
    rng = np.random.default_rng(1)
    for keys in (1, 3, 6):
        p = rng.dirichlet(np.ones(keys))
        np.testing.assert_allclose(taps.moved(p, rng.normal(size=(keys, 5))), p, atol=1e-12)


def test_hidden_keys_get_no_weight_and_equal_values_let_all_of_it_go():
    p, v = np.array([0.5, 0.0, 0.3, 0.2]), np.ones((4, 2))
    q = taps.moved(p, v)
    assert q[:2].tolist() == [0.0, 0.0]
    assert q.sum() == pytest.approx(1.0)
    found = taps.judge_move(p, q, v)
    assert found == {"directions": 2, "largest": 0.5, "left": 0.0, "moved": pytest.approx(0.5)}


def small_model(seed=0):
    data = get_task("reverse")
    config = TransformerConfig(len(data.vocabulary), d_model=8, num_heads=4, d_ff=12, num_layers=2, dropout=0.0)
    return data, randomize(Transformer(config, dtype=np.float64, seed=seed), scale=0.6)


@pytest.mark.exhaustive
def test_weights_of_all_heads_move_and_the_logits_stay():
    data, model = small_model()
    batch = data.batch(np.random.default_rng(0), 2, min_len=12)
    heads, row = adversary.move(model, batch.inputs, 13, {"model": "m", "seed": 0})
    assert len(heads) == 6 * 4
    assert max(head["moved"] for head in heads) > 0.1
    assert row["change"] < 1e-10 * row["size"]
    gpt = randomize(GPT(gpt_config(20, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16, dropout=0.0), seed=1))
    heads, row = adversary.move(gpt, [np.arange(15)[None]], 3, {"model": "GPT", "seed": 0})
    assert {head["attention"] for head in heads} == {"text"}
    assert row["change"] < 1e-10 * row["size"]


@pytest.mark.exhaustive
def test_the_adversary_overlaps_less_and_the_model_and_its_kinds_stay_as_they_were(monkeypatch):
    monkeypatch.setattr(adversary, "STRENGTH", 100.0)
    monkeypatch.setattr(adversary, "FOOLED_PEAK", 0.02)
    data, model = small_model()
    before = [p.data.copy() for p in model.parameters()]
    other = adversary.fool(model, data, 30, seed=0)
    assert all(np.array_equal(p.data, was) for p, was in zip(model.parameters(), before, strict=True))
    assert all(isinstance(layer.kind, FullAttention) for one in (model, other) for _, layer in taps.attentions(one))
    batch = data.batch(np.random.default_rng(3), 20)
    (_, a, heads), (_, b, _) = (adversary.look(one, batch) for one in (model, other))
    np.testing.assert_allclose(
        a, np.mean([w.mean(axis=1) for w in model.attention_weights(*batch.inputs).cross], axis=0)
    )
    assert heads.shape[0] == 8
    assert (a * b).sum() < 0.95 * (a * a).sum()
    itself, apart = (adversary.compare(model, one, batch) for one in (model, other))
    assert (itself["same first"], itself["maps"], itself["distance"]) == (1.0, 0.0, 0.0)
    assert apart["maps"] > 0
