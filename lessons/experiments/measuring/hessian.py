"""The Hessian of a model's loss: its products with vectors, and its largest eigenvalues by the method of Lanczos.

A model with P weights has a Hessian of P x P numbers, far too many to write down. Its product H v with one vector costs
one forward and one backward pass on complex numbers (see gradcheck/judge/second_order.py), and products are all that
Lanczos needs.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.checks import check_integer
from minitransformer.data.task import TrainingBatch
from minitransformer.gradcheck import hessian_vector_product
from minitransformer.gradcheck.holding import holding
from minitransformer.layers.losses import CrossEntropyLoss

TOLERANCE = 1e-6  # |Hx - lambda x| relative to |lambda|: the error of lambda is about its square
ROUNDING = 1e-13  # of H v, relative to the largest |lambda|
MAX_PRODUCTS = 200  # for each eigenvalue
FRESH = 0.01  # part of a random vector in a start that was given, in case that one is orthogonal to what we look for

Product = Callable[[np.ndarray], np.ndarray]


def in_float64(model: Any) -> Any:
    """A copy of a model of the package with float64 weights: H v needs them, and a checkpoint has float32."""
    copy = type(model)(model.config, **getattr(model, "options", {}), seed=None, dtype=np.float64)
    copy.load_state_dict({name: array.astype(np.float64) for name, array in model.state_dict().items()})
    return copy


class LossOfWeights:
    """The loss of a model on one batch as a function of all its weights, as one vector theta (P,) on the host.

    The loss is the cross-entropy of training (nats per token, with `label_smoothing`), without dropout. Calls leave the
    model's own weights and gradients as they are. Raises TypeError unless the weights are float64.
    """

    def __init__(self, model: Any, batch: TrainingBatch, label_smoothing: float = 0.0) -> None:
        self.model, self.batch, self.loss_fn = model, batch, CrossEntropyLoss(label_smoothing)
        self.parameters = dict(model.named_parameters())
        for name, parameter in self.parameters.items():
            if parameter.data.dtype != np.float64:
                raise TypeError(f"the Hessian needs float64 weights, got {parameter.data.dtype} for {name}")

    @property
    def weights(self) -> np.ndarray:
        """The model's own weights as a vector (P,)."""
        return self._join({name: parameter.data for name, parameter in self.parameters.items()})

    def loss(self, theta: np.ndarray) -> float:
        """L(theta)."""
        with self._holding(theta):
            return float(self._forward()[0])

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """L(theta) and its gradient (P,)."""
        with self._holding(theta):
            loss, cache = self._forward()
            self._backward(1.0, cache)
            return float(loss), self._join({name: parameter.grad for name, parameter in self.parameters.items()})

    def hessian_product(self, theta: np.ndarray, v: np.ndarray) -> np.ndarray:
        """H v (P,), where H is the Hessian of L at theta; exact to rounding."""
        with self._holding(theta):
            product = hessian_vector_product(self._forward, self._backward, {}, self.parameters, self._split(v))
        return self._join(product)

    def _forward(self):
        """The loss, and what backward needs."""
        logits, cache = self.model.forward(*self.batch.inputs)
        loss, cache_loss = self.loss_fn.forward(logits, self.batch.targets)
        return loss, (cache, cache_loss)

    def _backward(self, dloss, caches):
        """Add to the gradient of every parameter."""
        cache, cache_loss = caches
        self.model.backward(self.loss_fn.backward(dloss, cache_loss), cache)
        return ()

    @contextlib.contextmanager
    def _holding(self, theta: np.ndarray) -> Iterator[None]:
        """Inside a `with` block the model has the weights theta, and gradients of zero."""
        values = self._split(theta)
        with contextlib.ExitStack() as stack:
            for name, parameter in self.parameters.items():
                stack.enter_context(holding(parameter, values[name]))
            yield

    def _split(self, vector):
        """A vector (P,) as {name: array like the parameter}."""
        sizes = [parameter.data.size for parameter in self.parameters.values()]
        pieces = np.split(vector, np.cumsum(sizes)[:-1])
        named = zip(self.parameters.items(), pieces, strict=True)
        return {name: to_device(piece.reshape(parameter.data.shape)) for (name, parameter), piece in named}

    @staticmethod
    def _join(arrays):
        """{name: array} as one vector (P,)."""
        return np.concatenate([to_host(array).reshape(-1) for array in arrays.values()])


class Eigenpairs(NamedTuple):
    """Eigenvalues of a symmetric matrix H, the largest first, and how well they are known."""

    values: np.ndarray  # (K,) lambda
    vectors: np.ndarray  # (P, K), each of length 1
    residuals: np.ndarray  # (K,) |H x - lambda x|: an eigenvalue of H is no farther than this from lambda
    products: int  # how often a vector was multiplied by H


def largest_eigenpairs(
    product: Product,
    size: int,
    count: int = 1,
    *,
    start: np.ndarray | None = None,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    max_products: int = MAX_PRODUCTS,
) -> Eigenpairs:
    """The `count` largest eigenvalues of a symmetric matrix (size, size) of which only product(v) = H v is known.

    They are found one after another: each by Lanczos, orthogonal to the eigenvectors found before. From one start
    Lanczos sees one vector of each eigenspace, so a repeated eigenvalue would otherwise be found once. For the smallest
    eigenvalues, negate the product and the result.

    `start` (size,) is a guess at the first eigenvector, such as that of a matrix nearby. Lanczos stops when the
    residual is at most `tolerance` times |lambda|, or after `max_products` products for each eigenvalue: `residuals`
    tell which it was. Raises ValueError unless count is from 1 to size.
    """
    if not 1 <= check_integer("count", count) <= size:
        raise ValueError(f"count must be from 1 to {size}, got {count}")
    rng = np.random.default_rng(seed)
    products = 0

    def counted(v):
        nonlocal products
        products += 1
        return product(v)

    vectors = np.empty((size, 0))
    values, residuals = [], []
    guess = np.zeros(size) if start is None else start / np.linalg.norm(start)
    for _ in range(count):
        fresh = rng.standard_normal(size) / np.sqrt(size)
        x, guess = _lanczos(counted, guess + FRESH * fresh, vectors, tolerance, max_products)
        Hx = counted(x)
        values.append(float(x @ Hx))
        residuals.append(float(np.linalg.norm(Hx - values[-1] * x)))
        vectors = np.column_stack([vectors, x])
    order = np.argsort(values)[::-1]
    return Eigenpairs(np.array(values)[order], vectors[:, order], np.array(residuals)[order], products)


def _lanczos(
    product: Product, start: np.ndarray, found: np.ndarray, tolerance: float, max_products: int
) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvector (P,) of the largest eigenvalue among those orthogonal to `found` (P, k), and a guess at the next.

    The rows of Q span start, H start, H^2 start, ... In this basis H is tridiagonal: alpha on the diagonal, beta beside
    it. If s is an eigenvector of that small matrix, then x = Q^T s has the residual |beta_m s_m|, where beta_m leads
    out of the basis. In exact arithmetic each new vector is orthogonal to all but the last two by itself. In floating
    point it is not, and copies of eigenvalues would appear that H does not have: so each vector is made orthogonal to
    all others (Parlett 1998, chapter 13).
    """
    limit = min(max_products, len(start) - found.shape[1])
    Q = np.empty((limit, len(start)))
    alpha: list[float] = []
    beta: list[float] = []
    w = _orthogonal(start, found.T)
    length = np.linalg.norm(w)
    for m in range(1, limit + 1):
        Q[m - 1] = w / length
        w = product(Q[m - 1])
        alpha.append(float(Q[m - 1] @ w))
        w = _orthogonal(w, found.T, Q[:m])
        length = np.linalg.norm(w)
        values, s = np.linalg.eigh(np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1))
        if length * abs(s[-1, -1]) <= max(tolerance * abs(values[-1]), ROUNDING * np.abs(values).max()):
            break
        beta.append(float(length))
    ritz = s.T @ Q[:m]
    return ritz[-1], ritz[-2] if m > 1 else np.zeros(len(start))


def _orthogonal(w: np.ndarray, *bases: np.ndarray) -> np.ndarray:
    """w (P,) without its parts along the rows of `bases` (k, P). Rounding leaves a little of them: twice is enough."""
    for basis in 2 * bases:
        w = w - (basis @ w) @ basis
    return w
