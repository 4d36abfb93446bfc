"""What changed since 2017: equal sizes, windows with the same text at each place, and losses by plain loops."""

import numpy as np
import pytest

from experiments import since_2017
from experiments.since_2017 import BASE, BLOCK, CHANGES, LENGTH, LONG, MODERN, WINDOWED
from minitransformer.models import GPT


@pytest.mark.parametrize("layers", [3, 12])
def test_a_gate_leaves_the_number_of_parameters_within_two_percent(layers):
    base, gated = (GPT(since_2017.config_of(name, layers, 99), seed=None).num_parameters() for name in (BASE, "SwiGLU"))
    assert gated == pytest.approx(base, rel=0.02)


def test_a_row_without_one_change_differs_from_modern_in_that_one():
    for name, changes in CHANGES.items():
        if name.startswith("modern,"):
            assert len(dict(changes.items() ^ MODERN.items())) == 1, name
        elif not name.startswith("modern"):
            assert len(changes) == (name != "Muon" and not name.startswith(BASE)), name


@pytest.mark.exhaustive
def test_long_windows_have_the_same_text_at_each_place(small):
    ids, targets = since_2017.windows(LONG)
    assert ids.shape == targets.shape == (3, LONG)
    np.testing.assert_array_equal(ids[1:, :-BLOCK], ids[:-1, BLOCK:])
    np.testing.assert_array_equal(ids[:, 1:], targets[:, :-1])


@pytest.mark.exhaustive
def test_the_loss_by_place_is_the_mean_of_the_negative_logarithms(small):
    model = GPT(since_2017.config_of("ALiBi", 3, 99), seed=1)
    ids, targets = since_2017.windows(LONG)
    losses = np.zeros(LONG // BLOCK)
    for row, target in zip(ids, targets, strict=True):
        logits = model(row[None])[0].astype(float)
        for place in range(LONG):
            p = np.exp(logits[place]) / np.exp(logits[place]).sum()
            losses[place // BLOCK] -= np.log(p[target[place]]) / BLOCK / len(ids)
    np.testing.assert_allclose(since_2017.losses_by_place(model), losses, atol=2e-5)
    assert np.ptp(losses) > 1e-3


@pytest.mark.exhaustive
def test_a_window_changes_nothing_within_the_length_of_training(small):
    places = since_2017.train("RoPE", 0.002, 1, 0, 3)["places"]
    assert set(places) == {"RoPE", *WINDOWED}
    for name, losses in places.items():
        same = np.isclose(losses, places["RoPE"], atol=2e-5)
        assert same[: (LENGTH - 4) // BLOCK].all()
        assert same.all() == (name == "RoPE")
