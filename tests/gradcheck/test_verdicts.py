"""Right layers pass and wrong ones fail, analytic or not; where neither method can tell, the report says so."""

import numpy as np
import pytest

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck import check_layer
from minitransformer.gradcheck.judge.report import CANNOT_TELL, COMPLEX_STEP, OK, RICHARDSON, WRONG
from tests.gradcheck.small_layers import SHAPE, C, Function, X, names
from tests.tiers import some


def total(x):
    return x.sum(axis=-1, keepdims=True)


def roll(x, by=1):
    return np.roll(x, by, axis=-1)


def ranks(x):
    return np.argsort(x, axis=-1, kind="stable")


def sort_back(dy, x):
    dx = np.empty(x.shape)
    np.put_along_axis(dx, ranks(x), dy, axis=-1)
    return dx


def median_back(d, x):
    """The gradient of each row's median, from d (..., 1)."""
    n, order = x.shape[-1], ranks(x)
    dx = np.zeros(x.shape)
    for place in {(n - 1) // 2, n // 2}:
        np.put_along_axis(dx, order[..., place : place + 1], d / len({(n - 1) // 2, n // 2}), axis=-1)
    return dx


def l1(x):
    return np.abs(x).mean(axis=-1, keepdims=True) + 0.1


# functions that are not differentiable everywhere: y = f(x), dx = b(dy, x), where b takes one of the two sides at a
# kink, and a wrong b
KINKED = {
    "abs by sqrt": (lambda x: np.sqrt(x * x), lambda dy, x: dy * np.sign(x), lambda dy, x: dy),
    "relu by mask": (lambda x: x * (x > 0), lambda dy, x: dy * (x > 0), lambda dy, x: dy * (roll(x) > 0)),
    "clip": (
        lambda x: np.clip(x, -0.8, 0.8),
        lambda dy, x: dy * (np.abs(x) < 0.8),
        lambda dy, x: dy * (x < 0.8),
    ),
    "huber": (
        lambda x: np.where(np.abs(x) < 1.0, 0.5 * x * x, np.abs(x) - 0.5),
        lambda dy, x: dy * np.clip(x, -1.0, 1.0),
        lambda dy, x: dy * x,
    ),
    "maximum of neighbors": (
        lambda x: np.maximum(x, roll(x)),
        lambda dy, x: dy * (x > roll(x)) + roll(dy * (x <= roll(x)), -1),
        lambda dy, x: dy * (x > roll(x)),
    ),
    "sort": (lambda x: np.sort(x, axis=-1), sort_back, lambda dy, x: dy),
    "less the median": (
        lambda x: x - np.median(x, axis=-1, keepdims=True),
        lambda dy, x: dy - median_back(total(dy), x),
        lambda dy, x: dy,
    ),
    "L1 norm": (
        lambda x: x / l1(x),
        lambda dy, x: dy / l1(x) - np.sign(x) * total(dy * x) / (l1(x) ** 2 * x.shape[-1]),
        lambda dy, x: dy / l1(x),
    ),
    "gate": (lambda x: x * (x > roll(x)), lambda dy, x: dy * (x > roll(x)), lambda dy, x: dy * (x < roll(x))),
    "staircase": (lambda x: x + np.floor(x), lambda dy, x: dy, lambda dy, x: 2.0 * dy),
}


def a_seed_and_more(count):
    """The first of `count` seeds, and the others with `--exhaustive`."""
    return [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, count))]


def random_input(seed, shape=SHAPE):
    """The input that the command line draws."""
    return np.random.default_rng([seed, 103]).standard_normal(shape)


@pytest.mark.parametrize("scale", [1.0, *(pytest.param(scale, marks=pytest.mark.exhaustive) for scale in (1e-3, 30.0))])
@pytest.mark.parametrize("name", some(KINKED, 2))
def test_a_function_with_kinks_passes_and_not_with_a_wrong_gradient(name, scale):
    f, right, wrong = KINKED[name]
    report = check_layer(Function(f, right), scale * X, vary=False)
    assert report.passed, str(report)
    assert check_layer(Function(f, wrong), max(scale, 1) * X, vary=False).verdict == WRONG


ABS = (np.abs, lambda dy, x: dy * np.sign(x))


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("size", [0.005, 1e-6, 1e-9])
@pytest.mark.parametrize("seed", a_seed_and_more(4))
def test_a_small_kinked_term_is_neither_forgotten_nor_held_against_the_layer(seed, size):
    """The complex step does not see the second term, so a backward pass without it agrees with the complex step."""
    x, forward = random_input(seed), lambda x: x + size * np.abs(x)
    assert check_layer(Function(forward, lambda dy, x: dy), x).verdict == WRONG
    report = check_layer(Function(forward, lambda dy, x: dy * (1.0 + size * np.sign(x))), x)
    assert report.passed
    assert report.reason.startswith("the forward is not analytic")


class WithMeanAbs(Layer):
    """y = x W + 0.01 mean|W|, of which backward may forget the second term."""

    def __init__(self, forgets):
        self.W, self.forgets = Parameter(np.zeros((C, C))), forgets

    def forward(self, x):
        return x @ self.W.data + 0.01 * np.abs(self.W.data).mean(), x

    def backward(self, dy, x):
        self.W.grad += x.reshape(-1, C).T @ dy.reshape(-1, C)
        if not self.forgets:
            self.W.grad += 0.01 * dy.sum() * np.sign(self.W.data) / self.W.data.size
        return dy @ self.W.data.T


@pytest.mark.parametrize("seed", a_seed_and_more(4))
def test_each_tensor_has_a_method_of_its_own(seed):
    report = check_layer(WithMeanAbs(forgets=False), random_input(seed))
    assert report.passed
    assert {check.name: check.method for check in report.checks} == {"W": RICHARDSON, "input": COMPLEX_STEP}
    assert "the forward is analytic in input" in report.reason
    assert names(check_layer(WithMeanAbs(forgets=True), random_input(seed)).failures) == ["W"]


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("forward", [np.abs, lambda x: np.maximum(x, -x)], ids=["differences", "complex step"])
def test_entries_at_a_kink_are_checked_nearby(forward):
    x = X.copy()
    x[0, 1:] = 0.0
    right = check_layer(Function(forward, lambda dy, x: dy * np.sign(x)), x)
    assert right.passed
    assert right.worst.nearby == 8
    assert "no derivative at 8 of 24 entries, so checked at a point nearby" in str(right)
    wrong = Function(forward, lambda dy, x: dy * np.where(np.abs(x) < 0.1, 0.9, 1.0) * np.sign(x))
    assert check_layer(wrong, x).verdict == WRONG


def test_a_gradient_of_nan_at_a_kink_is_wrong():
    norm = Function(lambda x: np.sqrt((x * x).sum()), lambda dy, x: dy * x / np.sqrt((x * x).sum()))
    with np.errstate(invalid="ignore"):
        assert check_layer(norm, np.zeros(SHAPE)).verdict == WRONG


def table_of(size, scale):
    """y = x + |E| for a table E of `size` entries, with one entry of the gradient scaled."""

    class Table(Layer):
        def __init__(self):
            self.E = Parameter(np.zeros((size // 10, 10)))

        def forward(self, x, rng=None):
            return x + np.abs(self.E.data), None

        def backward(self, dy, cache):
            dE = dy * np.sign(self.E.data)
            dE[3, 7] *= scale
            self.E.grad += dE
            return dy

    return Table()


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("seed", a_seed_and_more(3))
def test_one_wrong_entry_of_a_large_table_with_kinks_is_found(seed):
    x = random_input(seed, (500, 10))
    report = check_layer(table_of(5000, 1.0), x)
    assert report.passed
    assert [check.directions for check in report.checks] == [3, 3]
    assert names(check_layer(table_of(5000, 1.001), x).failures) == ["E"]


def test_the_report_names_the_bound_of_differences():
    report = check_layer(Function(*ABS), X)
    assert 1e-12 <= report.worst.bound <= 1e-9
    assert f"ok (bound {report.worst.bound:.0e})" in str(report)


class Noisy(Layer):
    """y = x plus noise that is drawn again in each forward."""

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def forward(self, x, rng=None):
        return x + self.rng.standard_normal(x.shape), None

    def backward(self, dy, cache):
        return dy


class Drifting(Layer):
    """y = n x, where n counts the forward passes, thirty at a time."""

    calls = 0

    def forward(self, x, rng=None):
        self.calls += 1
        factor = 1 + self.calls // 30
        return factor * x, factor

    def backward(self, dy, factor):
        return factor * dy


@pytest.mark.parametrize("layer", [Noisy(), Drifting()], ids=["random", "drifting"])
def test_a_forward_that_does_not_repeat_itself_cannot_be_checked(layer):
    report = check_layer(layer, X[:1, :1])
    assert report.verdict == CANNOT_TELL
    assert not report.passed
    assert report.reason == "two forward passes of the same input gave different outputs"


def in_float32(x):
    """tanh, computed in float32 but returned in float64."""
    return np.tanh(x.astype(np.float32)).astype(np.float64)


def test_a_forward_in_float32_is_never_called_right_or_wrong():
    few = X[:1, :1]
    assert check_layer(Function(in_float32, lambda dy, x: dy / np.cosh(x) ** 2), few).verdict == CANNOT_TELL
    report = check_layer(Function(lambda x: in_float32(x).astype(np.float32), lambda dy, x: dy / np.cosh(x) ** 2), few)
    assert report.verdict == CANNOT_TELL
    assert report.reason == "the output is float32, too coarse for differences"


def test_an_output_that_is_not_finite_cannot_be_checked():
    with np.errstate(all="ignore"):
        report = check_layer(Function(np.log, lambda dy, x: dy / x), X)
    assert (report.verdict, report.reason) == (CANNOT_TELL, "the output is not finite")


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("seed", range(6))
def test_a_mask_of_the_upstream_gradient_is_found_though_one_such_gradient_may_hide_it(seed):
    """With dy and x of the same signs, dy (dy > 0) is the right gradient of a ReLU."""
    x = random_input(seed, (2,))
    wrong = Function(lambda x: np.maximum(x, 0.0), lambda dy, x: dy * (dy > 0))
    assert check_layer(wrong, x, seed=seed).verdict == WRONG


@pytest.mark.usefixtures("unexplained")
def test_a_wrong_gradient_is_found_whatever_the_size_of_the_input():
    for size in (1e-150, 1e150):
        assert check_layer(Function(*ABS), size * X).passed
        assert check_layer(Function(np.abs, lambda dy, x: 1.0001 * dy * np.sign(x)), size * X).verdict == WRONG


def test_tensors_of_a_forward_with_kinks_can_be_checked_together():
    report = check_layer(WithMeanAbs(forgets=False), X, together=True)
    assert (report.verdict, report.worst.method, report.worst.directions) == (OK, RICHARDSON, 3)
    assert check_layer(WithMeanAbs(forgets=True), X, together=True).verdict == WRONG


def test_a_constant_that_cancels_has_a_gradient_of_rounding_and_passes():
    """The bias moves all entries of a row alike, which the median takes away again."""

    class Shifted(Layer):
        def __init__(self):
            self.b = Parameter(np.zeros(C))

        def forward(self, x, rng=None):
            h = x * x + np.abs(self.b.data).mean()
            return h - np.median(h, axis=-1, keepdims=True), x

        def backward(self, dy, x):
            d = dy - median_back(total(dy), x * x)
            self.b.grad += d.sum() * np.sign(self.b.data) / self.b.data.size
            return 2.0 * d * x

    for size in (1e-3, 1.0):
        assert check_layer(Shifted(), size * X[:1], vary=False).passed
