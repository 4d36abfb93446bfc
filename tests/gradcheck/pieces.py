"""Functions with a right backward pass and known wrong ones: the pieces that random layers are made of.

Each function is (f, b, wrong): y = f(x), dx = b(dy, x), and `wrong` names other versions of b. The pieces of ANALYTIC
have derivatives of every order. UNSAFE are the same kind of function, written so that complex numbers break them.
KINKED are not differentiable everywhere. At a kink b takes one of the two sides.
"""

import math

import numpy as np

LIMIT, SLOPE, EPS = 0.8, 0.1, 1e-5


def mean(x):
    return x.mean(axis=-1, keepdims=True)


def total(x):
    return x.sum(axis=-1, keepdims=True)


def roll(x, by=1):
    return np.roll(x, by, axis=-1)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / total(e)


def normalize(x):
    centred = x - mean(x)
    return centred / np.sqrt(mean(centred * centred) + EPS)


def normalize_back(dy, x, first=1.0, second=1.0):
    y, centred = normalize(x), x - mean(x)
    return (dy - first * mean(dy) - second * y * mean(dy * y)) / np.sqrt(mean(centred * centred) + EPS)


def rows(x):
    """(..., T, C), with T = 1 for a vector."""
    return x if x.ndim > 1 else x[None]


def gram(x):
    r = rows(x)
    return (r @ r.swapaxes(-1, -2) @ r).reshape(x.shape)


def gram_back(dy, x, last=1.0):
    r, d = rows(x), rows(dy)
    t = r.swapaxes(-1, -2)
    return (r @ t @ d + d @ t @ r + last * (r @ d.swapaxes(-1, -2) @ r)).reshape(x.shape)


def reversed_cumsum(x):
    return np.flip(np.cumsum(np.flip(x, -1), axis=-1), -1)


ANALYTIC = {
    "tanh": (np.tanh, lambda dy, x: dy / np.cosh(x) ** 2, {"wrong point": lambda dy, x: dy / np.cosh(np.tanh(x)) ** 2}),
    "exp": (
        lambda x: np.exp(0.3 * x),
        lambda dy, x: 0.3 * dy * np.exp(0.3 * x),
        {"missing factor": lambda dy, x: dy * np.exp(0.3 * x)},
    ),
    "square": (lambda x: x * x, lambda dy, x: 2.0 * dy * x, {"missing factor": lambda dy, x: dy * x}),
    "silu": (
        lambda x: x * sigmoid(x),
        lambda dy, x: dy * (sigmoid(x) + x * sigmoid(x) * (1.0 - sigmoid(x))),
        {"missing term": lambda dy, x: dy * sigmoid(x)},
    ),
    "rational": (
        lambda x: x / (1.0 + x * x),
        lambda dy, x: dy * (1.0 - x * x) / (1.0 + x * x) ** 2,
        {"missing term": lambda dy, x: dy / (1.0 + x * x)},
    ),
    "softmax": (
        softmax,
        lambda dy, x: softmax(x) * (dy - total(dy * softmax(x))),
        {"missing term": lambda dy, x: softmax(x) * dy},
    ),
    "normalize": (
        normalize,
        normalize_back,
        {
            "missing term": lambda dy, x: normalize_back(dy, x, first=0.0),
            "missing last term": lambda dy, x: normalize_back(dy, x, second=0.0),
        },
    ),
    "neighbours": (
        lambda x: x * roll(x),
        lambda dy, x: dy * roll(x) + roll(dy * x, -1),
        {"missing term": lambda dy, x: dy * roll(x)},
    ),
    "cumsum": (
        lambda x: np.cumsum(x, axis=-1),
        lambda dy, x: reversed_cumsum(dy),
        {"transposed": lambda dy, x: np.cumsum(dy, axis=-1)},
    ),
    "gram": (gram, gram_back, {"missing term": lambda dy, x: gram_back(dy, x, last=0.0)}),
}


def one_by_one(function):
    """A function of a Python float, for each entry: math's functions refuse complex numbers."""
    return lambda x: np.array([function(value) for value in x.ravel()]).reshape(x.shape)


def refusing(x):
    if np.iscomplexobj(x):
        raise RuntimeError("real numbers only")
    return x / (1.0 + x * x)


def lengths(x):
    return np.linalg.norm(x, axis=-1, keepdims=True)


def unit_back(dy, x):
    y = x / lengths(x)
    return (dy - y * total(dy * y)) / lengths(x)


UNSAFE = {
    "math.tanh": (one_by_one(math.tanh), *ANALYTIC["tanh"][1:]),
    "refuses complex": (refusing, *ANALYTIC["rational"][1:]),
    "squared modulus": (lambda x: np.abs(x) ** 2, *ANALYTIC["square"][1:]),
    "unit length": (lambda x: x / lengths(x), unit_back, {"missing term": lambda dy, x: dy / lengths(x)}),
    "variance": (
        lambda x: (x - mean(x)) / np.sqrt(x.var(axis=-1, keepdims=True) + EPS),
        *ANALYTIC["normalize"][1:],
    ),
    "hypot": (
        lambda x: np.hypot(x, 1.0),
        lambda dy, x: dy * x / np.hypot(x, 1.0),
        {"missing factor": lambda dy, x: dy * x},
    ),
}


def relu_back(dy, x):
    return dy * (x > 0)


RELU_MISTAKES = {
    "mask of dy": lambda dy, x: dy * (dy > 0),
    "mask of the other side": lambda dy, x: dy * (x < 0),
    "mask forgotten": lambda dy, x: dy,
    "mask at another place": lambda dy, x: dy * (roll(x) > 0),
}


def ranks(x):
    return np.argsort(x, axis=-1, kind="stable")


def sort_back(dy, x):
    dx = np.empty(x.shape)
    np.put_along_axis(dx, ranks(x), dy, axis=-1)
    return dx


def largest(x):
    """1 at the first largest entry of each row."""
    return (np.arange(x.shape[-1]) == x.argmax(axis=-1)[..., None]).astype(float)


def median_back(d, x):
    """The gradient of each row's median, from d (..., 1)."""
    n, order = x.shape[-1], ranks(x)
    dx = np.zeros(x.shape)
    for place in {(n - 1) // 2, n // 2}:
        np.put_along_axis(dx, order[..., place : place + 1], d / len({(n - 1) // 2, n // 2}), axis=-1)
    return dx


def l1(x):
    return np.abs(x).mean(axis=-1, keepdims=True) + 0.1


KINKED = {
    "abs": (np.abs, lambda dy, x: dy * np.sign(x), {"mask forgotten": lambda dy, x: dy}),
    "abs by sqrt": (lambda x: np.sqrt(x * x), lambda dy, x: dy * np.sign(x), {"mask forgotten": lambda dy, x: dy}),
    "abs by sign": (lambda x: np.sign(x) * x, lambda dy, x: dy * np.sign(x), {"mask forgotten": lambda dy, x: dy}),
    "relu by maximum": (lambda x: np.maximum(x, 0.0), relu_back, RELU_MISTAKES),
    "relu by mask": (lambda x: x * (x > 0), relu_back, RELU_MISTAKES),
    "relu by heaviside": (lambda x: x * np.heaviside(x, 0.0), relu_back, RELU_MISTAKES),
    "relu by abs": (lambda x: 0.5 * (x + np.abs(x)), relu_back, RELU_MISTAKES),
    "leaky relu": (
        lambda x: np.where(x > 0, x, SLOPE * x),
        lambda dy, x: np.where(x > 0, dy, SLOPE * dy),
        {"mask without slope": relu_back},
    ),
    "clip": (
        lambda x: np.clip(x, -LIMIT, LIMIT),
        lambda dy, x: dy * (np.abs(x) < LIMIT),
        {"mask of one side": lambda dy, x: dy * (x < LIMIT), "mask forgotten": lambda dy, x: dy},
    ),
    "hard swish": (
        lambda x: x * np.clip(0.2 * x + 0.5, 0.0, 1.0),
        lambda dy, x: dy * (np.clip(0.2 * x + 0.5, 0.0, 1.0) + 0.2 * x * (np.abs(0.2 * x) < 0.5)),
        {"missing term": lambda dy, x: dy * np.clip(0.2 * x + 0.5, 0.0, 1.0)},
    ),
    "huber": (
        lambda x: np.where(np.abs(x) < 1.0, 0.5 * x * x, np.abs(x) - 0.5),
        lambda dy, x: dy * np.clip(x, -1.0, 1.0),
        {"mask forgotten": lambda dy, x: dy * x},
    ),
    "stable softplus": (
        lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
        lambda dy, x: dy * sigmoid(x),
        {"missing term": relu_back},
    ),
    "maximum of neighbours": (
        lambda x: np.maximum(x, roll(x)),
        lambda dy, x: dy * (x > roll(x)) + roll(dy * (x <= roll(x)), -1),
        {"missing term": lambda dy, x: dy * (x > roll(x))},
    ),
    "less the largest": (
        lambda x: x - x.max(axis=-1, keepdims=True),
        lambda dy, x: dy - largest(x) * total(dy),
        {"missing term": lambda dy, x: dy},
    ),
    "sort": (lambda x: np.sort(x, axis=-1), sort_back, {"transposed": lambda dy, x: dy}),
    "less the median": (
        lambda x: x - np.median(x, axis=-1, keepdims=True),
        lambda dy, x: dy - median_back(total(dy), x),
        {"missing term": lambda dy, x: dy},
    ),
    "L1 norm": (
        lambda x: x / l1(x),
        lambda dy, x: dy / l1(x) - np.sign(x) * total(dy * x) / (l1(x) ** 2 * x.shape[-1]),
        {"missing term": lambda dy, x: dy / l1(x)},
    ),
    "gate": (
        lambda x: x * (x > roll(x)),
        lambda dy, x: dy * (x > roll(x)),
        {"mask of the other side": lambda dy, x: dy * (x < roll(x))},
    ),
    "staircase": (lambda x: x + np.floor(x), lambda dy, x: dy, {"missing factor": lambda dy, x: 2.0 * dy}),
}

# functions that change the shape, for the end of a layer
REDUCTIONS = {
    "largest": (
        lambda x: x.max(axis=-1),
        lambda dy, x: largest(x) * dy[..., None],
        {"mask forgotten": lambda dy, x: np.broadcast_to(dy[..., None], x.shape)},
    ),
    "sum of absolute values": (
        lambda x: np.abs(x).sum(),
        lambda dy, x: dy * np.sign(x),
        {"mask forgotten": lambda dy, x: np.full(x.shape, dy)},
    ),
}
