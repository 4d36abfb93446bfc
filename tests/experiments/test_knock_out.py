"""Knock-out: what is measured of a model against decoding, differences and counting; rank correlation by counting."""

import numpy as np
import pytest

from experiments import knock_out
from experiments.measuring.ranks import ranks, spearman
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score, mean_loss
from minitransformer.inspection import heads, intervene
from minitransformer.models import Transformer, TransformerConfig
from tests.helpers import randomize


def model_and_batch():
    task = get_task("reverse")
    task.max_len = 6
    config = TransformerConfig(len(task.vocabulary), d_model=8, num_heads=2, d_ff=12, num_layers=1, dropout=0.0)
    return randomize(Transformer(config, dtype=np.float64), scale=0.7), task.batch(np.random.default_rng(0), 7)


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [2.0, 2.0, 0.0, 2.0, 5.0], [1.0, 1.0]])
def test_a_rank_counts_the_smaller_values_and_half_of_the_equal_ones(values):
    expected = [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]
    assert ranks(values).tolist() == expected


def test_rank_correlation_is_the_correlation_of_the_ranks():
    one, other = [0.3, 0.1, 0.1, 5.0, 0.2], [1.0, 1.0, 3.0, 2.0, 9.0]
    assert spearman(one, other) == pytest.approx(np.corrcoef(ranks(one), ranks(other))[0, 1])
    assert spearman(one, np.exp(one)) == pytest.approx(1.0)
    assert spearman(one, [-x for x in one]) == pytest.approx(-1.0)
    assert np.isnan(spearman(one, [2.0] * 5))


def test_loss_and_exact_answers_are_those_of_evaluation_and_decoding():
    model, batch = model_and_batch()
    model.output.E.data *= 3.0
    short = type(batch)(*(ids[:, :2] for ids in batch))  # with one token, some answers are right by chance
    for part in (batch, short):
        found = knock_out.measure(model, part)
        assert found["loss"] == pytest.approx(mean_loss(model, [part]))
    answers = decode_and_score(model, batch)[0]
    told = batch._replace(
        target_out=np.pad(answers, ((0, 0), (0, 1)))[:, : answers.shape[1]],
        target_in=np.pad(answers, ((0, 0), (1, 0)), constant_values=1)[:, :-1],
    )
    assert knock_out.measure(model, told)["exact"] == 1.0
    told.target_out[2, 0] = 9 - told.target_out[2, 0] % 2  # another id than the model's
    assert knock_out.measure(model, told)["exact"] < 1.0


def test_slopes_are_those_of_the_loss_and_add_up_to_that_of_a_common_factor():
    model, batch = model_and_batch()
    every = heads(model)
    outputs, slopes = knock_out.pass_through(model, batch, every)
    assert slopes.shape == (6, 7)
    for head in (0, 3, 5):
        around = []
        for h in (1e-5, -1e-5):
            with intervene(model, every[head]._replace(scale=1.0 + h)):
                around.append(mean_loss(model, [batch]))
        assert slopes[head].sum() == pytest.approx((around[0] - around[1]) / 2e-5, rel=1e-4, abs=1e-9)
    _, cache = model.forward(*batch.inputs)
    merged = cache.features.encode.encoder.layers[0].self_attention.sublayer.output.x  # (B, S, C)
    np.testing.assert_allclose(outputs[1], merged[batch.source != 0][:, 4:].mean(axis=0))


def test_sharpness_is_the_mean_of_the_largest_weights_of_tokens():
    model, batch = model_and_batch()
    every = heads(model)
    found, weights = knock_out.sharpness(model, batch, every), model.attention_weights(*batch.inputs)
    for i, kind in enumerate(("encoder", "decoder", "cross")):
        ids = batch.source if kind == "encoder" else batch.target_in
        rows = np.argwhere(ids != 0)
        largest = [getattr(weights, kind)[0][b, 1, t].max() for b, t in rows]
        assert found[2 * i + 1] == pytest.approx(np.mean(largest))


def test_a_pair_costs_more_than_its_heads_where_one_stands_in_for_the_other():
    whole, tokens = {"right": 1.0}, [1.0, 0.75, 1.0]
    joint = [{"right": right} for right in (0.75, 0.25, 0.75)]  # of 1 and 2, 1 and 3, 2 and 3
    found = knock_out.compare_pairs(whole, [{"right": right} for right in tokens], joint, ["a", "b", "c"])
    assert found["hidden"] == pytest.approx(1 / 3)
    assert found["largest"] == {"heads": ["a", "c"], "alone": 0.0, "extra": 0.75}
