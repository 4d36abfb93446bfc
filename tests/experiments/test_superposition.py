"""Superposition: the gradient of the toy model by the complex step, its shapes, and the loss at right angles."""

import numpy as np
import pytest

from experiments import superposition
from tests.helpers import complex_step, random_host_array


def test_the_gradient_of_the_toy_model_is_that_of_the_complex_step():
    rng = np.random.default_rng(0)
    x, dy = random_host_array(rng, 4, 7, 5), random_host_array(rng, 4, 7, 5)
    W, b = (random_host_array(rng, 4, size, 5).astype(complex) for size in (2, 1))
    dW, db = superposition.backward(dy, superposition.forward(x, W.real, b.real)[1])

    def loss():
        return (superposition.forward(x, W, b)[0] * dy).sum()

    np.testing.assert_allclose(dW, complex_step(loss, W), rtol=1e-12)
    np.testing.assert_allclose(db, complex_step(loss, b), rtol=1e-12)


def directions(degrees, lengths):
    """Columns with these angles and lengths (2, 5)."""
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]) * lengths


@pytest.mark.parametrize(
    ("degrees", "lengths", "name"),
    [
        ([10, 154, 298, 82, 226], [1.0, 0.9, 1.1, 1.0, 1.0], "pentagon"),
        ([350, 80, 170, 260, 30], [1.0, 1.0, 1.0, 1.0, 0.1], "cross"),
        ([0, 90, 45, 45, 45], [1.0, 1.0, 0.0, 0.1, 0.2], "2 features"),
        ([0, 60, 120, 180, 240], [1.0] * 5, "5 features"),
        ([0, 10, 90, 180, 200], [0.1] * 5, "0 features"),
    ],
)
def test_a_shape_is_named_by_the_angles_between_the_columns_that_are_kept(degrees, lengths, name):
    assert superposition.shape(directions(degrees, lengths)) == name


@pytest.mark.parametrize("sparsity", [0.7])
def test_the_best_loss_at_right_angles_is_that_of_a_model_that_keeps_two_features(sparsity):
    rng = np.random.default_rng(3)
    x = rng.random((400_000, 5)) * (rng.random((400_000, 5)) >= sparsity)
    W, b = np.eye(5)[:2], np.array([[0, 0, *[(1 - sparsity) / 2] * 3]])
    error = superposition.forward(x, W, b)[0] - x
    assert superposition.orthogonal(sparsity) == pytest.approx((0.9 ** np.arange(5) * error**2).mean(), rel=0.01)


def test_features_are_0_as_often_as_the_sparsity_says_and_a_seed_keeps_its_values():
    x = superposition.draw_features(np.random.default_rng(1), 3, 20_000)
    assert x.shape == (len(superposition.SPARSITIES), 3, 20_000, 5)
    np.testing.assert_allclose((x == 0).mean(axis=(1, 2, 3)), superposition.SPARSITIES, atol=0.01)
    assert x[0, 1, x[3, 1] > 0] == pytest.approx(x[3, 1, x[3, 1] > 0])
    assert not np.array_equal(x[0, 0], x[0, 1])


def test_the_interval_of_a_share_is_wilsons():
    low, high = superposition.wilson(8, 10)  # of Newcombe 1998's formula, solved by hand: |p - 0.8| = 1.96 sd(p)
    for end in (low, high):
        assert abs(end - 0.8) == pytest.approx(1.96 * (end * (1 - end) / 10) ** 0.5)
    assert superposition.wilson(20, 20)[1] == pytest.approx(1.0)
