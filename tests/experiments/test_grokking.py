"""Grokking: the split, and the frequencies of an embedding by sums of cosines and sines."""

import math

import numpy as np
import pytest

from experiments import grokking

P = grokking.P


def waves(frequencies, phases):
    """E (P + 2, C): feature c of number n is cos(2 pi f_c n / P + phase_c); the other two tokens are 7 everywhere."""
    E = np.full((P + 2, len(frequencies)), 7.0)
    for n in range(P):
        for c, (f, phase) in enumerate(zip(frequencies, phases, strict=True)):
            E[n + 1, c] = math.cos(2 * math.pi * f * n / P + phase)
    return E


def test_every_ordered_pair_is_a_row_with_its_sum():
    rows = grokking.sums()
    assert sorted(map(tuple, rows.ids[:, :2].tolist())) == [(a, b) for a in range(1, P + 1) for b in range(1, P + 1)]
    for (a, b, _), target in zip(rows.ids.tolist(), rows.targets.tolist(), strict=True):
        assert target == [0, 0, (a - 1 + b - 1) % P + 1]


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_mirror_images_are_on_the_same_side_of_the_split_and_otherwise_leak(share):
    rng = np.random.default_rng(0)
    together, alone = (grokking.split(share, mirrored, rng).reshape(P, P) for mirrored in (True, False))
    assert np.array_equal(together, together.T)
    assert together.mean() == pytest.approx(share, abs=0.01)
    assert alone.mean() == pytest.approx(share, abs=0.001)
    assert alone.T[~alone].mean() == pytest.approx(share, abs=0.03), "a mirror image is trained on as often as any pair"


def test_the_energy_of_an_embedding_is_that_of_its_waves():
    found = grokking.energies(3 + 2 * waves([4, 4, 11, 29], [0.3, 1.0, 2.0, 0.5]))
    expected = np.zeros(P // 2)
    expected[[3, 10, 28]] = 0.5, 0.25, 0.25
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_removing_frequencies_leaves_the_mean_the_other_waves_and_the_other_tokens():
    E, other = waves([4, 4, 11], [0.3, 1.0, 2.0]), waves([9, 28, 9], [0.1, 0.2, 0.7])
    both = E + other + 5
    np.testing.assert_allclose(grokking.without(both, [9, 28])[1 : P + 1], E[1 : P + 1] + 5, atol=1e-12)
    np.testing.assert_array_equal(grokking.without(both, [9, 28])[[0, P + 1]], both[[0, P + 1]])
    np.testing.assert_allclose(grokking.without(both, []), both, atol=1e-12)
