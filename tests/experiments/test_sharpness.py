"""The experiment on the edge of stability, on losses whose curvature is known and in a very small form."""

import numpy as np
import pytest

from experiments import sharpness
from minitransformer.system.progress import tqdm


class Quadratic:
    """Half of the sum of curvature times theta^2, from a given point."""

    def __init__(self, curvature, weights):
        self.curvature, self.weights = np.array(curvature), np.array(weights)

    def gradient(self, theta):
        return float(self.curvature @ theta**2) / 2, self.curvature * theta

    def hessian_product(self, theta, v):
        return self.curvature * v


class Quartic(Quadratic):
    """A quarter of the sum of theta^4: its second derivative at theta is 3 theta^2."""

    def gradient(self, theta):
        return float((theta**4).sum()) / 4, theta**3

    def hessian_product(self, theta, v):
        return 3 * theta**2 * v


@pytest.mark.parametrize(("lr", "grows"), [(0.39, False), (0.41, True)])
def test_on_a_quadratic_gradient_descent_converges_below_2_over_the_largest_eigenvalue(lr, grows):
    row = sharpness.descend(Quadratic([1.0, 5.0, 2.0], [0.3, 0.1, -0.2]), lr, 60, 20, tqdm(disable=True))
    assert row["losses"][1] == pytest.approx(
        (0.3 * (1 - lr)) ** 2 / 2 + 5 * (0.1 * (1 - 5 * lr)) ** 2 / 2 + (0.2 * (1 - 2 * lr)) ** 2
    )
    assert (row["losses"][-1] > row["losses"][0]) == grows
    assert row["steps"] == [0, 20, 40, 60]
    assert len(row["losses"]) == 61
    assert np.allclose(row["sharpness"], 5.0, rtol=1e-4)


def test_the_hessian_is_that_of_the_weights_at_that_step():
    row = sharpness.descend(Quartic([], [1.0, 0.5]), 0.1, 2, 1, tqdm(disable=True))
    thetas = [1.0, 0.9, 0.9 - 0.1 * 0.9**3]
    assert np.allclose(row["sharpness"], [3 * theta**2 for theta in thetas], rtol=1e-3)


def test_the_summary_has_the_first_step_at_the_edge_and_the_median_of_the_later_half():
    row = {"lr": 0.1, "steps": [0, 10, 20, 30, 40], "sharpness": [1.0, 20.0, 30.0, 4.0, 18.0], "losses": [1.0]}
    assert sharpness.summary(row) == {**row, "reached": 10, "late": 18.0}
    assert sharpness.summary({**row, "lr": 0.01})["reached"] is None


def test_the_batch_is_a_fixed_one_and_the_model_smooth():
    first, second = sharpness.make_loss(0), sharpness.make_loss(0)
    theta = first.weights
    assert np.array_equal(theta, second.weights)
    assert first.gradient(theta)[0] == second.gradient(theta)[0] != sharpness.make_loss(1).gradient(theta)[0]
    assert first.model.config.activation == "gelu"
