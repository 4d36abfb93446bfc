"""How a gradient is checked: by complex steps or Richardson, entry by entry or along directions, alone or together."""

import numpy as np
import pytest

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck import check_gradients, check_layer
from minitransformer.gradcheck.judge.report import COMPLEX_STEP, RICHARDSON
from tests.gradcheck.small_layers import SHAPE, Affine, Function, X, draw, names

pytestmark = pytest.mark.usefixtures("unexplained")
APART = np.sign(X) * (0.3 + np.abs(X))  # no entry near the kink of abs


def forced(x):
    """Sine in an array that is float64 whatever comes in."""
    y = np.empty(x.shape)
    y[...] = np.sin(x)
    return y


def added(x):
    """x added in place to float64 zeros, which a complex x cannot be."""
    y = np.zeros(x.shape)
    y += x
    return y


def refused(x):
    if np.iscomplexobj(x):
        raise RuntimeError("real numbers only")
    return np.sin(x)


DROPS = "the forward drops the imaginary part"
NOT_ANALYTIC = "the forward is not analytic: the complex step and differences disagree"
REFUSES = "the forward does not take complex numbers: "
FALLBACKS = {
    "abs": (np.abs, lambda dy, x: dy * np.sign(x), DROPS),
    "abs beside an analytic part": (lambda x: np.abs(x) + x * x, lambda dy, x: dy * (np.sign(x) + 2 * x), NOT_ANALYTIC),
    "conj": (lambda x: np.sin(np.conj(x)), lambda dy, x: dy * np.cos(x), NOT_ANALYTIC),
    "float64 by astype": (lambda x: np.sin(x.astype(np.float64)), lambda dy, x: dy * np.cos(x), DROPS),
    "float64 by asarray": (lambda x: np.sin(np.asarray(x, np.float64)), lambda dy, x: dy * np.cos(x), DROPS),
    "float64 by a given array": (forced, lambda dy, x: dy * np.cos(x), DROPS),
    "float64 by addition in place": (added, lambda dy, x: dy, f"{REFUSES}Cannot cast"),
    "an error": (refused, lambda dy, x: dy * np.cos(x), f"{REFUSES}real numbers only"),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_a_forward_without_complex_step_is_checked_by_richardson_and_the_report_says_why(name):
    forward, backward, reason = FALLBACKS[name]
    report = check_layer(Function(forward, backward), APART)
    assert report.passed
    assert report.reason.startswith(reason)
    assert report.worst.method == RICHARDSON
    assert reason in str(report)


def test_a_forward_that_is_not_analytic_is_called_that_also_if_the_complex_step_was_asked_for():
    for name, (forward, backward, reason) in FALLBACKS.items():
        report = check_layer(Function(forward, backward), APART, method=COMPLEX_STEP, vary=False)
        assert (report.passed, report.worst.method, report.reason[: len(reason)]) == (True, RICHARDSON, reason), name


@pytest.mark.parametrize("name", FALLBACKS)
def test_richardson_fails_a_gradient_that_is_wrong_in_the_sixth_digit(name):
    forward, backward, _ = FALLBACKS[name]
    assert names(check_layer(Function(forward, lambda dy, x: (1.0 + 1e-6) * backward(dy, x)), APART).failures) == [
        "input"
    ]


def test_an_entry_beside_a_kink_excuses_no_other_entry():
    """Differences across the kink are of no use for that entry; they say nothing about the rest of the tensor."""
    x, wrong = APART.copy(), Function(np.abs, lambda dy, x: 1.01 * dy * np.sign(x))
    for near in np.linspace(0.004, 0.0075, 4):
        x[0, 0, 0] = near
        assert not check_layer(wrong, x).passed, f"passed with an entry of {near}"


def test_entries_at_the_kink_do_not_drive_a_relu_to_richardson():
    x = X.copy()
    x[0, 0, :2] = 1e-9, -1e-9
    report = check_layer(Function(lambda x: np.maximum(x, 0), lambda dy, x: dy * (x > 0)), x)
    assert report.passed
    assert report.worst.method == COMPLEX_STEP


@pytest.mark.parametrize("method", [COMPLEX_STEP, RICHARDSON])
def test_the_method_can_be_asked_for(method, monkeypatch):
    report = check_layer(Affine(), X, method=method)
    assert report.passed
    assert report.reason == "as asked"
    assert {check.method for check in report.checks} == {method}
    monkeypatch.setattr(Affine, "bias_gradient", lambda self, dz: 0.999 * dz.sum(axis=(0, 1)))
    assert names(check_layer(Affine(), X, method=method).failures) == ["b"]


def test_a_tensor_is_checked_along_directions_only_above_the_limit():
    directions = {check.name: check.directions for check in check_layer(Affine(), X, max_entries=16).checks}
    assert directions == {"input": 3, "W": 0, "b": 0, "g": 0}
    directions = {
        check.name: check.directions for check in check_layer(Affine(), X, max_entries=4, directions=5).checks
    }
    assert directions == {"input": 5, "W": 5, "b": 0, "g": 0}


class Square(Layer):
    """y = x W with 10,000 weights, the gradient of one of which is 1 % off if `wrong`."""

    def __init__(self, wrong):
        self.W = Parameter(np.zeros((100, 100)))
        self.wrong = wrong

    def forward(self, x, rng=None):
        return x @ self.W.data, x

    def backward(self, dy, x):
        dW = x.T @ dy
        if self.wrong:
            dW[17, 93] *= 1.01
        self.W.grad += dW
        return dy @ self.W.data.T


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 4))])
def test_one_wrong_entry_among_ten_thousand_is_found_along_random_directions(seed):
    x = draw(4, 3, 100)
    assert check_layer(Square(wrong=False), x, method=COMPLEX_STEP, seed=seed).passed
    report = check_layer(Square(wrong=True), x, method=COMPLEX_STEP, seed=seed)
    assert names(report.failures) == ["W"]
    assert (report.worst.directions, report.worst.shape) == (3, (100, 100))


def test_together_finds_a_mistake_in_the_last_of_several_tensors(monkeypatch):
    assert names(check_layer(Affine(), X, together=True).checks) == ["all 4 tensors"]
    monkeypatch.setattr(Affine, "scale_gradient", lambda self, dy, h: 1.001 * (dy * h).sum(axis=(0, 1)))
    assert "<dall 4 tensors, v" in str(check_layer(Affine(), X, together=True))


def test_together_costs_one_forward_for_each_direction():
    calls = []

    def forward(x):
        calls.append(x.dtype)
        return np.sin(x), x

    check = {"method": COMPLEX_STEP, "together": True, "directions": 2}
    assert check_gradients(forward, lambda dy, x: dy * np.cos(x), {"x": X}, **check).passed
    assert calls.count(np.complex128) == 2


def test_another_seed_takes_another_upstream_gradient_and_the_same_seed_the_same():
    def upstream(seed):
        seen = []

        def backward(dy, x):
            seen.append(dy)
            return dy * np.cos(x)

        check_gradients(lambda x: (np.sin(x), x), backward, {"x": X}, seed=seed)
        return seen[0]

    assert np.array_equal(upstream(0), upstream(0))
    assert not np.array_equal(upstream(0), upstream(1))


def test_the_tolerance_can_be_set():
    slightly = Function(np.sin, lambda dy, x: dy * np.cos(x) * (1 + 1e-9))
    assert not check_layer(slightly, X).passed
    assert check_layer(slightly, X, tolerance=1e-8).passed


def test_a_constant_function_has_only_the_gradient_zero():
    constant = lambda x: np.zeros(3) + 0 * x.sum()  # noqa: E731
    assert check_layer(Function(constant, lambda dy, x: np.zeros(SHAPE)), X).passed
    assert not check_layer(Function(constant, lambda dy, x: np.full(SHAPE, 1e-9)), X).passed
