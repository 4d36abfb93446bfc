"""check_layer passes right layers, fails each kind of wrong one by the name of its tensor, and leaves no trace."""

import numpy as np
import pytest

from minitransformer import functional as F
from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck import check_gradients, check_layer, gradient_errors
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.layers import CrossAttention, Linear
from tests.gradcheck.small_layers import SHAPE, Affine, C, Function, T, X, draw, names

MISTAKES = {
    "wrong in the eleventh digit": ("input", "input_gradient", lambda self, dz: (1 + 1e-11) * (dz @ self.W.data.T)),
    "through W, not its transpose": ("input", "input_gradient", lambda self, dz: dz @ self.W.data),
    "of the first sequence only": ("W", "weight_gradient", lambda self, x, dz: x[0].T @ dz[0]),
    "a mean, not a sum": ("b", "bias_gradient", lambda self, dz: dz.mean(axis=(0, 1))),
    "with the output's place taken by dy": ("g", "scale_gradient", lambda self, dy, h: (dy * dy).sum(axis=(0, 1))),
}


def test_the_page_that_explains_the_check_finds_every_error_and_no_other_and_leaves_the_weights():
    layer = Affine()
    randomize_parameters(layer)
    before = layer.state_dict()
    errors = gradient_errors(layer, X)
    assert list(errors) == ["input 0", "W", "b", "g"]
    assert max(errors.values()) <= 1e-14
    for tensor, method, wrong in MISTAKES.values():
        layer_with_it = type("Wrong", (Affine,), {method: wrong})()
        randomize_parameters(layer_with_it)
        errors = gradient_errors(layer_with_it, X)
        found = [name for name, error in errors.items() if error > 1e-12]
        assert found == [tensor.replace("input", "input 0")]
    assert all(np.array_equal(before[name], value) for name, value in layer.state_dict().items())
    cross = CrossAttention(6, 2, dtype=np.float64)
    randomize_parameters(cross)
    x, memory = draw(1, 2, 3, 6), draw(2, 2, 5, 6)
    errors = gradient_errors(cross, x, memory)
    assert max(errors.values()) <= 1e-12
    assert len(errors) == 2 + len(cross.parameters())


def test_a_right_layer_passes_with_every_input_and_parameter_in_the_report():
    report = check_layer(Affine(), X)
    assert report.passed
    assert names(report.checks) == ["input", "W", "b", "g"]
    assert [check.shape for check in report.checks] == [SHAPE, (C, C), (C,), (C,)]
    assert report.worst.error <= 1e-14
    assert report.name == "Affine"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_gradient_fails_and_no_other(mistake, monkeypatch):
    tensor, method, wrong = MISTAKES[mistake]
    monkeypatch.setattr(Affine, method, wrong)
    report = check_layer(Affine(), X, name="mine")
    assert not report.passed
    assert names(report.failures) == [tensor]
    assert report.worst.name == tensor
    assert report.name == "mine"


def test_the_upstream_gradient_has_nothing_to_do_with_the_parameters():
    class Product(Layer):
        def __init__(self):
            self.w = Parameter(np.zeros(SHAPE))

        def forward(self, x, rng=None):
            return x * self.w.data, x

        def backward(self, dy, x):
            self.correlation = np.corrcoef(dy.ravel(), self.w.data.ravel())[0, 1]
            self.w.grad += dy * x
            return dy * self.w.data

    layer = Product()
    assert check_layer(layer, X).passed
    assert abs(layer.correlation) < 0.7


def test_the_upstream_gradient_is_not_blind_to_a_softmax_without_backward():
    """All ones would be: the weights always add up to 1."""
    assert not check_layer(Function(lambda x: F.softmax(x)[0], lambda dy, x: np.zeros(SHAPE)), X).passed


class Normalized(Layer):
    """LayerNorm with gamma outside the means of its backward: exact where gamma is 1, and wrong elsewhere."""

    def __init__(self, size=C):
        self.gamma, self.beta = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x, rng=None):
        return F.layer_norm(x, self.gamma.data, self.beta.data)

    def backward(self, dy, cache):
        _, dgamma, dbeta = F.layer_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return F.layer_norm_backward(dy, cache._replace(gamma=np.ones(C)))[0] * self.gamma.data


def test_a_mistake_that_initial_weights_hide_is_found():
    assert check_layer(Normalized(), X, randomize=False).passed
    assert names(check_layer(Normalized(), X).failures) == ["input"]


def test_a_gradient_of_nan_fails_and_is_the_worst(monkeypatch):
    def spoilt(self, x, dz):
        gradient = np.einsum("bti,bto->io", x, dz)
        gradient[1, 2] = np.nan
        return gradient

    monkeypatch.setattr(Affine, "weight_gradient", spoilt)
    monkeypatch.setattr(Affine, "input_gradient", lambda self, dz: 1e9 * dz)
    report = check_layer(Affine(), X)
    assert names(report.failures) == ["input", "W"]
    assert (report.worst.name, report.worst.index) == ("W", (1, 2))


@pytest.mark.parametrize(("touched", "failures"), [(0.0, []), (1e-3, ["unused"])])
def test_a_parameter_that_is_never_used_must_have_no_gradient(touched, failures):
    class WithUnused(Affine):
        def __init__(self):
            super().__init__()
            self.unused = Parameter(np.zeros(3))

        def backward(self, dy, cache):
            self.unused.grad += touched
            return super().backward(dy, cache)

    assert names(check_layer(WithUnused(), X).failures) == failures


class KeyBias(Layer):
    """Attention of x to itself with a bias on keys and one on values. The key's gradient is 0, except for rounding."""

    size, stray = 1.0, 0.0  # of all outputs, and of the part of the value's gradient that the key gets

    def __init__(self):
        self.key, self.value = Parameter(np.zeros(C)), Parameter(np.zeros(C))

    def forward(self, x, rng=None):
        heads = x.reshape(-1, 1, T, C)
        y, cache = F.scaled_dot_product_attention(heads, heads + self.key.data, heads + self.value.data)
        return self.size * y, cache

    def backward(self, dy, cache):
        dq, dk, dv, _ = F.scaled_dot_product_attention_backward(self.size * dy, cache)
        self.value.grad += dv.sum(axis=(0, 1, 2))
        self.key.grad += dk.sum(axis=(0, 1, 2)) + self.stray * dv.sum(axis=(0, 1, 2))
        return (dq + dk + dv).reshape(-1, T, C)


@pytest.mark.parametrize("size", [1e-9, 1e9])
@pytest.mark.parametrize(("stray", "failures"), [(0.0, []), (1e-6, ["key"])])
def test_a_bias_of_keys_passes_with_rounding_alone_and_fails_with_any_gradient(stray, failures, size):
    layer = KeyBias()
    layer.stray, layer.size = stray, size
    assert names(check_layer(layer, X).failures) == failures


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda dy, x: None, "backward returned 0 gradients for 1 inputs"),
        (lambda dy, x: (dy, dy), "backward returned 2 gradients for 1 inputs"),
        (lambda dy, x: dy.sum(axis=0), r"the gradient of input has shape \(3, 4\), not \(2, 3, 4\)"),
        (lambda dy, x: dy.swapaxes(0, 1), r"the gradient of input has shape \(3, 2, 4\), not \(2, 3, 4\)"),
        (lambda dy, x: 0.0, r"the gradient of input has shape \(\), not \(2, 3, 4\)"),
    ],
)
def test_gradients_of_a_wrong_number_or_shape_are_refused_in_a_sentence(backward, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_layer(Function(lambda x: x, backward), X)


def product(backward=lambda dy, a, b: (dy * b, dy * a)):
    """y = a b, with two gradients to return."""
    return Function(lambda a, b: a * b, backward)


def test_a_missing_gradient_among_several_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"^the gradient of input 1 has shape \(\), not \(2, 3, 4\)$"):
        check_layer(product(lambda dy, a, b: (dy * b, None)), X, draw(1, *SHAPE))


def test_exchanged_gradients_of_two_inputs_fail():
    assert names(check_layer(product(), X, draw(1, *SHAPE)).checks) == ["input 0", "input 1"]
    exchanged = product(lambda dy, a, b: (dy * a, dy * b))
    assert names(check_layer(exchanged, X, draw(1, *SHAPE)).failures) == ["input 0", "input 1"]


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
def test_an_input_that_is_not_float64_is_refused_by_its_name(dtype):
    with pytest.raises(TypeError, match=f"^gradient checks need float64 throughout, but input 1 is {dtype}$"):
        check_layer(product(), X, np.ones(SHAPE, dtype))


def test_a_float32_parameter_is_refused_by_its_name():
    class Model(Layer):
        def __init__(self):
            self.inner = Linear(C, 5)

    with pytest.raises(TypeError, match=r"^gradient checks need float64 throughout, but inner\.W is float32$"):
        check_layer(Model(), X)


def test_randomized_parameters_have_order_one_with_gamma_around_one():
    layer = Affine()
    layer.norm = Normalized(500)
    layer.bias = Parameter(np.zeros(500))
    randomize_parameters(layer)
    means = {name: parameter.data.mean() for name, parameter in layer.named_parameters() if parameter.data.size == 500}
    assert set(means) == {"norm.gamma", "norm.beta", "bias"}
    assert all(abs(mean - (name == "norm.gamma")) < 0.1 for name, mean in means.items())
    assert all(0.1 < parameter.data.std() < 2.0 for parameter in layer.parameters())


def test_functions_without_inputs_are_checked_by_their_parameters():
    table, ids = Parameter(draw(3, 5, C)), np.array([[1, 1, 4]])

    def backward(dy, cache):
        np.add.at(table.grad, ids, dy)

    report = check_gradients(lambda: (table.data[ids], None), backward, {}, {"table": table}, name="look-up")
    assert report.passed
    assert names(report.checks) == ["table"]
    forgetful = lambda dy, cache: table.grad.__setitem__(ids, dy)  # noqa: E731 - loses the token that comes twice
    assert not check_gradients(lambda: (table.data[ids], None), forgetful, {}, {"table": table}).passed


def test_gradcheck_checks_what_is_trained_and_the_input():
    layer = Linear(5, 3, rng=np.random.default_rng(0), dtype=np.float64)
    layer.freeze("W")
    report = check_layer(layer, np.random.default_rng(1).standard_normal((2, 4, 5)))
    assert report.passed
    assert [check.name for check in report.checks] == ["input", "b"]
