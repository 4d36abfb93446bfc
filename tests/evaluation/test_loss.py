"""The held-out loss: the mean over all tokens that count, whatever the batches look like."""

import numpy as np
import pytest

from minitransformer.data import TextBatch
from minitransformer.evaluation import mean_loss
from minitransformer.functional import cross_entropy
from minitransformer.models import GPT, gpt_config
from tests.helpers import device, randomize, relative_error

V = 13


def test_the_mean_is_over_tokens_and_not_over_batches():
    config = gpt_config(V, d_model=12, num_heads=3, d_ff=20, num_layers=1, max_len=9, dropout=0.4)
    model = randomize(GPT(config, dtype=np.float64))
    rng = np.random.default_rng(0)
    ids, targets = rng.integers(1, V, (7, 6)), rng.integers(1, V, (7, 6))
    targets[2:, 1:] = 0  # the second batch has few tokens that count
    whole, _ = cross_entropy(model(ids), device(targets))
    parts = [TextBatch(ids[rows], targets[rows]) for rows in (slice(0, 2), slice(2, 7))]
    assert relative_error(mean_loss(model, parts), float(whole)) < 1e-13


@pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 5, 7, 100])
def test_the_loss_does_not_depend_on_how_many_sequences_are_computed_at_a_time(micro_batch_size):
    config = gpt_config(V, d_model=12, num_heads=3, d_ff=20, num_layers=1, max_len=9)
    model = randomize(GPT(config, dtype=np.float64))
    rng = np.random.default_rng(1)
    ids, targets = rng.integers(1, V, (7, 6)), rng.integers(0, V, (7, 6))
    targets[3] = 0  # a sequence in which nothing counts
    batch, sizes, features = TextBatch(ids, targets), [], model.features
    expected, _ = cross_entropy(model(ids), device(targets))

    def watched(ids):
        sizes.append(len(ids))
        return features(ids)

    model.features = watched
    assert relative_error(mean_loss(model, [batch], micro_batch_size), float(expected)) < 1e-13
    assert sum(sizes) == 7
    assert max(sizes) == min(7, micro_batch_size)


def test_no_tokens_have_no_loss():
    assert mean_loss(None, []) == 0.0
