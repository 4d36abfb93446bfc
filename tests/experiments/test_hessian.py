"""Hessians of whole models: their products, and the eigenvalues that Lanczos finds from products alone."""

import numpy as np
import pytest

from experiments.measuring.hessian import LossOfWeights, in_float64, largest_eigenpairs
from minitransformer.data.tasks import Batch
from minitransformer.data.text import TextBatch
from minitransformer.models import (
    BERT,
    GPT,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
)

V = 7
SIZES = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 5, "dropout": 0.1}
PAIRS = Batch(
    np.array([[3, 4, 5, 2], [6, 3, 2, 0]]), np.array([[1, 4, 3], [1, 5, 0]]), np.array([[4, 3, 2], [5, 2, 0]])
)
TEXT = TextBatch(np.array([[3, 5, 4, 6], [6, 6, 3, 0]]), np.array([[5, 4, 6, 2], [6, 3, 2, 0]]))
MODELS = {
    "Transformer": (lambda: Transformer(TransformerConfig(V, **SIZES), dtype=np.float64), PAIRS),
    "GPT": (lambda: GPT(gpt_config(V, **SIZES), dtype=np.float64), TEXT),
    "BERT": (lambda: BERT(bert_config(V, **SIZES), dtype=np.float64), TEXT),
    "Seq2Seq": (lambda: Seq2Seq(Seq2SeqConfig(V, 4, 3, 1, attention="additive"), dtype=np.float64), PAIRS),
}


def make_loss(name):
    """The loss of a model whose weights are of order one, so that all of it is curved."""
    make, batch = MODELS[name]
    model, rng = make(), np.random.default_rng(5)
    for parameter in model.parameters():
        parameter.data += 0.5 * rng.standard_normal(parameter.data.shape)
    return LossOfWeights(model, batch, label_smoothing=0.1)


def symmetric(eigenvalues, seed=0):
    """A matrix with these eigenvalues, and its eigenvectors as columns."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))
    return rotation * eigenvalues @ rotation.T, rotation


@pytest.mark.parametrize("name", MODELS)
def test_gradient_and_product_of_every_model_are_derivatives_of_its_loss(name):
    loss = make_loss(name)
    theta, rng = loss.weights, np.random.default_rng(0)
    u, v = rng.standard_normal((2, len(theta)))
    value, gradient = loss.gradient(theta)
    product = loss.hessian_product(theta, v)
    t = 1e-5
    assert value == loss.loss(theta)
    assert u @ gradient == pytest.approx((loss.loss(theta + t * u) - loss.loss(theta - t * u)) / (2 * t), rel=1e-6)
    differences = (loss.gradient(theta + t * v)[1] - loss.gradient(theta - t * v)[1]) / (2 * t)
    assert np.allclose(product, differences, atol=1e-6 * np.abs(product).max(), rtol=0)


def test_the_model_keeps_its_weights_and_its_gradients():
    loss = make_loss("GPT")
    before = loss.weights
    for parameter in loss.model.parameters():
        parameter.grad[...] = 3.0
    loss.gradient(before + 1.0)
    loss.hessian_product(before + 1.0, before)
    assert np.array_equal(loss.weights, before)
    assert all((parameter.grad == 3.0).all() for parameter in loss.model.parameters())


@pytest.mark.exhaustive
def test_eigenvalues_of_a_model_are_those_of_its_full_hessian():
    loss = make_loss("GPT")
    theta = loss.weights
    full = np.column_stack([loss.hessian_product(theta, column) for column in np.eye(len(theta))])
    expected = np.linalg.eigvalsh((full + full.T) / 2)
    assert np.abs(full - full.T).max() <= 1e-12 * expected[-1]
    assert expected[0] < 0

    top = largest_eigenpairs(lambda v: loss.hessian_product(theta, v), len(theta), 4, tolerance=1e-8)
    bottom = largest_eigenpairs(lambda v: -loss.hessian_product(theta, v), len(theta), tolerance=1e-8)
    assert np.allclose(top.values, expected[:-5:-1], atol=1e-10 * expected[-1], rtol=0)
    assert -bottom.values[0] == pytest.approx(expected[0], abs=1e-10 * expected[-1])
    residuals = np.linalg.norm(full @ top.vectors - top.values * top.vectors, axis=0)
    assert np.allclose(top.residuals, residuals, atol=1e-12 * expected[-1])
    assert (residuals <= 1.1e-8 * expected[-1]).all()


def test_a_repeated_eigenvalue_is_found_as_often_as_it_is_there_and_a_negative_one_is_not_taken_for_a_large_one():
    eigenvalues = np.array([-9.0, -1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 7.0])
    H, rotation = symmetric(eigenvalues)
    pairs = largest_eigenpairs(lambda v: H @ v, 11, 5, tolerance=1e-9)
    assert np.allclose(pairs.values, [7.0, 4.0, 4.0, 4.0, 2.0], atol=1e-12)
    assert np.allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-12)
    assert abs(pairs.vectors[:, 0] @ rotation[:, -1]) == pytest.approx(1.0)
    assert np.allclose(largest_eigenpairs(lambda v: -H @ v, 11, 2).values, [9.0, 1.0])
    assert np.allclose(largest_eigenpairs(lambda v: H @ v, 11, 11).values, eigenvalues[::-1], atol=1e-9)


def test_after_as_many_products_as_there_are_rows_the_eigenvalue_is_exact():
    """An eigenvalue far outside is known to rounding soon. Unless removed, rounding brings it back again and again."""
    eigenvalues = np.concatenate([[-1e4, -3e3, -1e3], np.linspace(0.0, 1.0, 60)])
    H, _ = symmetric(eigenvalues)
    pairs = largest_eigenpairs(lambda v: H @ v, len(H), tolerance=1e-11)
    assert pairs.products <= len(H) + 1, "one is for the residual"
    assert pairs.values[0] == pytest.approx(1.0, abs=1e-10)
    assert pairs.residuals[0] <= 1e-9


def test_a_start_near_the_eigenvector_saves_products_and_one_orthogonal_to_it_does_no_harm():
    eigenvalues = np.linspace(0.0, 1.0, 60) ** 3
    H, rotation = symmetric(eigenvalues)

    def search(start):
        return largest_eigenpairs(lambda v: H @ v, 60, start=start, tolerance=1e-3)

    cold, near, wrong = (search(start) for start in (None, 5 * rotation[:, -1], rotation[:, 0]))
    assert near.products < 0.7 * cold.products
    assert all(pairs.values[0] == pytest.approx(1.0, abs=1e-5) for pairs in (cold, near, wrong))


def test_a_float32_model_is_refused_and_its_float64_copy_has_the_same_weights():
    model = BERT(bert_config(V, **SIZES), num_segments=3)
    with pytest.raises(TypeError, match=r"^the Hessian needs float64 weights, got float32 for "):
        LossOfWeights(model, TEXT)
    copy = in_float64(model)
    assert np.array_equal(
        LossOfWeights(copy, TEXT).weights, np.concatenate([p.data.ravel() for p in model.parameters()])
    )
    assert all(parameter.data.dtype == np.float64 for parameter in copy.parameters())
