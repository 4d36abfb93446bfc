"""check_layer as the judge of other people's layers: no verdict is false, and each says what it must."""

import numpy as np
import pytest

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck import LayerError, check_layer, check_layer_second_order
from minitransformer.gradcheck.judge.report import CANNOT_TELL, OK, WRONG
from tests.gradcheck.judged import RIGHT, Affine, Tanh
from tests.gradcheck.judged import WRONG as WRONG_LAYERS
from tests.gradcheck.small_layers import C, Function, X, draw
from tests.tiers import some


@pytest.mark.parametrize("judged", some(RIGHT, 3), ids=lambda judged: judged.name)
def test_a_right_layer_passes_or_the_check_says_why_it_cannot_tell(judged):
    report = judged.check()
    assert report.verdict == (CANNOT_TELL if "plain array" in judged.says else OK), str(report)
    assert judged.says in str(report)


@pytest.mark.parametrize("judged", some(WRONG_LAYERS, 3), ids=lambda judged: judged.name)
def test_a_wrong_layer_never_passes_and_the_report_names_the_mistake(judged):
    report = judged.check()
    # whether a plain array is learned or constant is for its author to say
    assert report.verdict == (CANNOT_TELL if "plain array" in judged.says else WRONG), str(report)
    assert judged.says in str(report)
    assert not ("assigned" in judged.says and report.failures), "it is not also called a wrong number"


def test_the_row_says_what_was_checked_and_with_which_sizes():
    first, contents, sizes = check_layer(Affine(), X).row().splitlines()
    assert first.endswith("  ok")
    assert contents == "  1 input (24 numbers): input; 2 parameters (20 numbers): W, b"
    assert sizes == "  also with B = 1, B = 7, B = T = 3, T = 1, T = 19, T = 131, T = C = 4, inputs 5 times as large"


def state(layer):
    return [(p.data, p.data.copy(), p.grad, p.grad.copy()) for p in layer.parameters()]


def assert_restored(layer, before):
    for parameter, (data, values, grad, gradient) in zip(layer.parameters(), before, strict=True):
        assert parameter.data is data
        assert parameter.grad is grad
        assert np.array_equal(data, values)
        assert np.array_equal(grad, gradient)


class Fails(Affine):
    def backward(self, dy, x):
        self.W.grad += 1.0
        self.W.data += 1.0
        return dy @ np.zeros((7, 2))


@pytest.mark.parametrize("check", [check_layer, check_layer_second_order])
@pytest.mark.parametrize("cls", [Affine, Fails])
def test_a_check_leaves_weights_and_gradients_as_they_were_also_after_an_error(cls, check):
    layer = cls()
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data[...] = draw(seed, *parameter.data.shape)
        parameter.grad[...] = draw(9 + seed, *parameter.data.shape)
    before = state(layer)
    if cls is Fails:
        with pytest.raises(LayerError, match=r"test_judged\.py, line \d+, in backward \(return dy @ np\.zeros"):
            check(layer, X)
    else:
        assert check(layer, X).passed
    assert_restored(layer, before)


def test_parameters_and_arrays_that_are_not_found_are_restored_too():
    class Hidden(Layer):
        def __init__(self):
            self.weights, self.count = {"W": Parameter(np.ones((C, C)))}, np.zeros(3)

        def forward(self, x):
            self.count += 1.0
            return x @ self.weights["W"].data, x

        def backward(self, dy, x):
            self.weights["W"].grad += x.reshape(-1, C).T @ dy.reshape(-1, C)
            return dy @ self.weights["W"].data.T

    layer = Hidden()
    assert check_layer(layer, X).verdict == WRONG
    assert not layer.count.any()
    assert not layer.weights["W"].grad.any()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (lambda x: x, r"forward must return \(y, cache\), got ndarray"),
        (lambda x: (x, x, x), r"forward must return \(y, cache\), got 3 values"),
        (lambda x: ({"y": x}, x), r"with arrays or numbers in y, got dict"),
        (lambda x: (None, x), r"with arrays or numbers in y, got NoneType"),
    ],
)
def test_a_forward_that_returns_something_else_is_refused(y, message):
    layer = Tanh()
    layer.forward = y
    with pytest.raises(TypeError, match=message):
        check_layer(layer, X)


def test_a_gradient_of_a_wrong_shape_for_one_sequence_is_refused_with_the_size():
    squeezed = Function(np.sin, lambda dy, x: (dy * np.cos(x)).squeeze())
    with pytest.raises(ValueError, match=r"^with B = 1: the gradient of input has shape \(3, 4\), not \(1, 3, 4\)$"):
        check_layer(squeezed, X)


def test_a_lone_nan_in_the_gradient_needs_no_clue():
    spoilt = Function(np.sin, lambda dy, x: np.where(x == X[0, 0, 0], np.nan, dy * np.cos(x)))
    report = check_layer(spoilt, X)
    assert (report.verdict, report.clues) == (WRONG, ())
