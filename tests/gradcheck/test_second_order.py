"""Every Hessian of the table is symmetric, and the test of symmetry sees what is the gradient of no function."""

import math

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.functional.layer_norm import _layer_norm_backward
from minitransformer.gradcheck import check_layer_second_order, hessian_vector_product
from minitransformer.gradcheck.judge.report import CANNOT_TELL, OK, WRONG
from minitransformer.gradcheck.subjects import SUBJECTS, select_subjects
from minitransformer.layers import LayerNorm
from minitransformer.models import GPT, gpt_config
from minitransformer.training import Adam
from tests.gradcheck.small_layers import Function, X
from tests.helpers import random_array
from tests.museum.planting import planted

GROUPS = list(dict.fromkeys(subject.group for subject in SUBJECTS.values()))
SOME = ("softmax", "LayerNorm", "GRU", "SelfAttention", "dropout")  # the others are tried in larger tiers
# maps that are linear in all their inputs together
LINEAR = {
    *("relu", "dropout", "embedding", "split_heads", "merge_heads", "repeat_heads", "rotate", "relative_bias"),
    *("Dropout", "Embedding", "InputEmbedding", "PositionalEncoding", "LearnedPositions", "Patches", "balance_loss"),
}


def test_the_product_is_that_of_the_hessian_written_out():
    """L = sum of d_i x_i^3 y_i: the second derivatives are 6 d x y, 3 d x^2 and 0."""
    rng = np.random.default_rng(1)
    x, y, d, v, w = (random_array(rng, 5) for _ in range(5))
    weight = Parameter(y.copy())

    def forward(x):
        return x**3 * weight.data, x

    def backward(dy, x):
        weight.grad += dy * x**3
        return 3 * dy * x**2 * weight.data

    product = hessian_vector_product(forward, backward, {"x": x}, {"y": weight}, {"x": v, "y": w}, d)
    assert np.allclose(product["x"], d * (6 * x * y * v + 3 * x**2 * w), rtol=1e-14, atol=0)
    assert np.allclose(product["y"], d * 3 * x**2 * v, rtol=1e-14, atol=0)


def test_parameters_keep_their_arrays_and_their_gradients():
    model = GPT(gpt_config(7, d_model=4, num_heads=2, d_ff=6, num_layers=1, max_len=5), dtype=np.float64)
    optimizer = Adam(model.parameters())
    ids = np.array([[1, 2, 3]])
    parameters = dict(model.named_parameters())

    def forward():
        y, cache = model.forward(ids)
        return y.sum(), (cache, y.shape)

    def backward(dloss, cache):
        model.backward(np.full(cache[1], dloss), cache[0])

    optimizer.zero_grad()
    backward(1.0, forward()[1])
    before = {name: (p.data, p.grad, p.data.copy(), p.grad.copy()) for name, p in parameters.items()}
    v = {name: np.ones(p.data.shape) for name, p in parameters.items()}
    product = hessian_vector_product(forward, backward, {}, parameters, v)
    assert any(array.any() for array in product.values())
    for name, p in parameters.items():
        data, grad, numbers, gradients = before[name]
        assert p.data is data
        assert np.shares_memory(p.grad, grad)
        assert np.array_equal(p.data, numbers)
        assert np.array_equal(p.grad, gradients)


@pytest.mark.parametrize(
    "group", [group if group in SOME else pytest.param(group, marks=pytest.mark.exhaustive) for group in GROUPS]
)
def test_every_hessian_of_the_table_is_symmetric(group):
    for subject in select_subjects([group]):
        report = subject.check_second_order(differences=False)
        assert report.verdict == OK, str(report)
        assert report.error <= 1e-12
        nothing = subject.switches.get("mask") == "nothing"
        raw = group == "expert_weights" and not subject.switches.get("renormalize", True)  # weights as they are
        assert (report.size == 0.0) == (group in LINEAR or nothing or raw), subject.name


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=getattr(pytest.mark, "exhaustive" if group in SOME else "weekly")) for group in GROUPS],
)
def test_every_product_agrees_with_differences_of_the_gradient(group):
    for subject in select_subjects([group]):
        report = subject.check_second_order()
        assert report.verdict == OK, str(report)
        assert report.witness <= report.bound <= 1e-7


def test_a_backward_that_is_the_gradient_of_no_function_is_wrong():
    x = random_array(np.random.default_rng(3), 2, 5)
    with planted(_layer_norm_backward, "dx -= x_hat * through_std", "pass"):
        report = check_layer_second_order(LayerNorm(5, dtype=np.float64), x)
    assert report.verdict == WRONG
    assert report.error > 1e-3
    assert "the gradient of no function" in str(report)


def test_a_backward_that_is_the_gradient_of_another_function_passes():
    """Twice the gradient of L is the gradient of 2 L. The first-order check finds it."""
    report = check_layer_second_order(Function(np.tanh, lambda dy, x: 2 * dy * (1 - np.tanh(x) ** 2)), X)
    assert report.verdict == OK
    assert report.size > 0.1


def test_a_backward_that_is_not_analytic_cannot_be_told():
    report = check_layer_second_order(Function(np.sinh, lambda dy, x: dy * np.cosh(np.real(x))), X)
    assert report.verdict == CANNOT_TELL
    assert "not analytic" in str(report)
    assert "cannot tell" in str(report)


@pytest.mark.parametrize("store", [lambda x: x.astype(np.float64), lambda x: np.add(x, x, out=np.zeros(x.shape))])
def test_a_backward_that_refuses_complex_numbers_cannot_be_told(store):
    report = check_layer_second_order(Function(np.sin, lambda dy, x: dy * np.cos(store(x))), X)
    assert report.verdict == CANNOT_TELL
    assert "complex" in report.reason
    assert math.isnan(report.error)


def test_a_linear_function_has_no_second_derivative():
    report = check_layer_second_order(Function(lambda x: 3 * x, lambda dy, x: 3 * dy), X)
    assert (report.verdict, report.size, report.error) == (OK, 0.0, 0.0)
    assert "the Hessian is 0" in report.row()
    assert str(report) == report.row()


def test_without_differences_there_is_no_bound():
    report = SUBJECTS["tanh"].check_second_order(differences=False)
    assert math.isinf(report.bound)
    assert report.row().endswith("  ok")
    assert report.as_dict()["bound"] is None
