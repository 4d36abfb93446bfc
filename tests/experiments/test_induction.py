"""Induction: rows that repeat, scores by loops, heads removed by zeros in the weights, and two heads set by hand."""

import numpy as np
import pytest

from experiments import induction
from minitransformer.evaluation.loss import mean_loss
from minitransformer.gradcheck.holding import holding
from minitransformer.inspection.interventions import heads, intervene
from minitransformer.models import GPT, gpt_config

T = induction.T


@pytest.mark.parametrize("distinct", [False, True])
def test_rows_repeat_with_their_own_period(distinct):
    rows, again = induction.draw_rows(np.random.default_rng(0), 200, distinct)
    periods = T - again.sum(axis=1)
    assert (periods.min(), periods.max()) == induction.PERIODS
    assert (rows.ids.min(), rows.ids.max()) == (1, induction.V - 1)
    twice = 0
    for ids, targets, place, period in zip(rows.ids, rows.targets, again, periods, strict=True):
        assert np.array_equal(ids[1:], targets[:-1])
        assert np.array_equal(place, np.arange(T) >= period)
        for t in range(period, T):
            assert ids[t] == ids[t - period]
            assert targets[t] == ids[t - period + 1]
        twice += len(set(ids[:period])) < period
    assert bool(twice) != distinct


def test_scores_are_the_mean_weights_on_the_tokens_of_each_role():
    rng = np.random.default_rng(1)
    weights = [np.tril(rng.random((5, 3, T, T))) for _ in range(2)]

    class Model:
        def attention_weights(self, ids):
            return weights

    rows, again = induction.draw_rows(rng, 5)
    found = induction.scores(Model(), rows, again)
    for head in range(3):
        sums = {"own": [], "previous": [], "induction": []}
        for n, t in zip(*np.nonzero(again), strict=True):
            first, second = weights[0][n, head, t], weights[1][n, head, t]
            sums["own"].append(first[t])
            sums["previous"].append(first[t - 1])
            sums["induction"].append(sum(second[j] for j in range(1, t + 1) if rows.ids[n, j - 1] == rows.ids[n, t]))
        for role, values in sums.items():
            assert found[role][head] == pytest.approx(np.mean(values))
    assert set(
        induction.scores(type("One", (Model,), {"attention_weights": lambda *_: weights[:1]})(), rows, again)
    ) == {
        "own",
        "previous",
    }


def test_a_removed_head_leaves_what_zeros_in_its_rows_of_the_output_matrix_leave(monkeypatch):
    monkeypatch.setattr(induction, "SIZES", {**induction.SIZES, "d_model": 8, "d_ff": 4})
    model = GPT(gpt_config(induction.V, num_layers=2, positions="rope", **induction.SIZES), seed=3, dtype=np.float64)
    for parameter in model.parameters():
        parameter.data += 0.5 * np.random.default_rng(4).standard_normal(parameter.data.shape)
    rows, again = induction.draw_rows(np.random.default_rng(5), 6)
    found = induction.remove_each_head(model, rows, again)
    repeated = rows._replace(targets=np.where(again, rows.targets, 0))
    losses = []
    for layer in model.blocks.layers:
        W = layer.self_attention.sublayer.output.W
        for head in range(4):
            zeros = W.data.copy()
            zeros[2 * head : 2 * head + 2] = 0
            with holding(W, zeros):
                losses.append(mean_loss(model, [repeated]))
    assert found["without"]["induction"] == pytest.approx(losses[found["heads"]["induction"]])
    assert found["without"]["previous"] == pytest.approx(losses[found["heads"]["previous"]])
    others = [losses[i] for i in range(4, 8) if i != found["heads"]["induction"]]
    assert found["without"]["other, layer 2"] == pytest.approx(np.mean(others))
    assert found["loss"] == pytest.approx(mean_loss(model, [repeated]))
    with intervene(model, heads(model)[found["heads"]["own"]]._replace(scale=again[..., None])):
        assert found["side"]["own, first period"][0] == pytest.approx(mean_loss(model, [repeated]))
    assert found["induction without"]["induction"] == pytest.approx(found["final"]["induction"])


def test_two_heads_set_by_hand_continue_every_row_and_neither_can_do_so_alone():
    model = induction.set_by_hand()
    rows, again = induction.draw_rows(np.random.default_rng(6), 40, distinct=True)
    loss, accuracy = induction.loss_and_accuracy(model, rows, again)
    assert (loss, accuracy) == (pytest.approx(0, abs=1e-6), 1.0)
    found = induction.scores(model, rows, again)
    assert (found["previous"], found["induction"]) == ([pytest.approx(1)], [pytest.approx(1)])
    for head in heads(model):
        with intervene(model, head):
            assert induction.loss_and_accuracy(model, rows, again)[1] < 0.2
