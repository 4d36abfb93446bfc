"""Faithfulness: the task by counting, effects in loops, and scores by differences."""

import numpy as np
import pytest

from experiments import faithfulness
from experiments.faithfulness import AGAIN, SCORES, Vote
from minitransformer.data import get_task
from minitransformer.inspection import Change, Rows, intervene
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import randomize


def case():
    task = get_task("reverse")
    config = TransformerConfig(len(task.vocabulary), d_model=8, num_heads=2, d_ff=12, num_layers=2, dropout=0.0)
    source = task.encode("abcab")
    return randomize(Transformer(config, dtype=np.float64), scale=0.6), task, source, task.solve(source[None])[0]


def test_the_answer_of_a_vote_is_the_digit_with_the_most_copies():
    task = Vote()
    batch = task.batch(np.random.default_rng(0), 200)
    for source, target in zip(batch.source, batch.target_out, strict=True):
        text = task.decode(source)
        counts = {digit: text.count(digit) for digit in task.digits}
        assert [*counts.values()].count(max(counts.values())) == 1
        assert task.decode(target) == max(counts, key=counts.get)
    assert {sum(c.isdigit() for c in task.decode(row)) for row in batch.source} >= set(range(1, 10))


def test_sources_with_copies_have_as_many_of_one_digit_and_no_other():
    task = Vote()
    for copies in (1, 3, 6):
        for source in faithfulness.sources_of(task, copies, np.random.default_rng(1), 20):
            digits = [c for c in task.decode(source) if c.isdigit()]
            assert len(digits) == copies
            assert len(set(digits)) == 1


def test_digits_are_replaced_by_digits_and_letters_by_letters():
    task = Vote()
    for text, others in (("3", task.digits), ("c", task.letters)):
        assert task.decode(faithfulness.kind_of(task, task.encode(text)[0])) == others
    reverse = get_task("reverse")
    assert reverse.decode(faithfulness.kind_of(reverse, reverse.encode("b")[0])) == reverse.symbols


def test_the_effect_is_the_distance_of_the_distributions_before_and_after(monkeypatch):
    model, task, source, answer = case()
    monkeypatch.setattr(faithfulness, "kind_of", lambda data, token: (token, 9))
    effect, probability = faithfulness.replaced(model, task, source, answer, np.random.default_rng(0))

    def distribution(ids, t):
        logits = model(np.array([[*ids, 2]]), np.array([[1, *answer[:-1]]]))[0, t]
        return np.exp(logits) / np.exp(logits).sum()

    for t, j in np.ndindex(5, 5):
        before, after = distribution(source, t), distribution([*source[:j], 9, *source[j + 1 :]], t)
        assert effect[t, j] == pytest.approx(sum(abs(a - b) for a, b in zip(before, after, strict=True)) / 2)
        assert probability[t] == pytest.approx(before[answer[t]])


def log_p(model, inputs, answer, t):
    """log p of the answer at its place t, by the row of its own."""
    return float(np.log(faithfulness.probabilities(model, *inputs)[t, t, answer[t]]))


def test_gradients_of_the_input_are_the_slopes_of_the_logarithm_at_that_place_of_the_path():
    model, _, source, answer = case()
    inputs = faithfulness.inputs_of(source, answer, 5)
    x, gradient = faithfulness.input_gradients(model, inputs, answer, 0.3)
    np.testing.assert_allclose(x, model.source_embedding(inputs[0]))
    for t, j, c in ((0, 5, 2), (3, 1, 7), (4, 4, 0)):
        around = []
        for h in (1e-6, -1e-6):
            moved = np.zeros(x.shape)
            moved[t, j, c] = h
            with intervene(model, Change("source_embedding", 0.3, moved)):
                around.append(log_p(model, inputs, answer, t))
        assert gradient[t, j, c] == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-5, abs=1e-8)


def test_the_first_order_effect_is_the_slope_along_all_weights_on_a_token():
    model, _, source, answer = case()
    inputs = faithfulness.inputs_of(source, answer, 5)
    found = faithfulness.first_order(model, inputs, answer)
    weights = model.attention_weights(*inputs).cross
    for t, j in ((0, 3), (2, 0), (4, 5)):
        around = []
        for h in (1e-6, -1e-6):
            factor = np.ones(6)
            factor[j] += h
            places = [f"decoder.layers.{i}.cross_attention.sublayer" for i in range(2)]
            with intervene(model, *(Rows(place, w * factor) for place, w in zip(places, weights, strict=True))):
                around.append(log_p(model, inputs, answer, t))
        assert found[t, j] == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-5, abs=1e-8)


def test_every_score_ranks_every_token_for_every_answer():
    model, task, source, answer = case()
    found = faithfulness.scores(model, source, answer)
    assert [AGAIN, *found] == list(SCORES)
    assert all(score.shape == (5, 6) for score in found.values())
    for name in ("attention", "rollout"):
        np.testing.assert_allclose(found[name].sum(axis=1), 1.0)
    assert faithfulness.judge(model, task, source[None])["rank"]["attention"] <= 1.0
