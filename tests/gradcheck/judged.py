"""Layers as readers write them, right and wrong: `python -m tests.gradcheck.judged` prints the verdicts."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck import Report, check_layer
from minitransformer.layers import LayerNorm, Linear
from tests.gradcheck.small_layers import SHAPE, C, Function, T, X, draw

IDS = np.array([[1, 4, 1], [0, 2, 3]])
MASK = np.array([[True, True, False], [True, True, True]])
TWO = (X, draw(1, *SHAPE))
MASK_OF_KEYS = MASK[:, None, :]


class Judged(NamedTuple):
    """A layer with its inputs, and what must be said about it."""

    name: str
    make: Callable[[], Layer]
    says: str = ""  # a part of the report
    inputs: tuple = (X,)
    context: tuple = ()

    def check(self, **options: Any) -> Report:
        """The verdict on a new layer."""
        layer = self.make()
        seed = 5 if "rng" in signature(layer.forward).parameters else None
        return check_layer(layer, *self.inputs, context=self.context, dropout_seed=seed, **options)


RIGHT: list[Judged] = []
WRONG: list[Judged] = []


def right(inputs=(X,), context=(), says=""):
    """Put a class into the table of right layers, by the name in its docstring."""
    return lambda cls: RIGHT.append(Judged(cls.__doc__, cls, says, inputs, context)) or cls


def right_function(name, f, b, **given):
    """Put y = f(x), dx = b(dy, x) into the table of right layers."""
    RIGHT.append(Judged(name, lambda: Function(f, b), **given))


def wrong(says, inputs=(X,), context=()):
    """Put a class into the table of wrong layers, by the name in its docstring."""
    return lambda cls: WRONG.append(Judged(cls.__doc__, cls, says, inputs, context)) or cls


def wrong_function(says, name, f, b):
    """Put y = f(x), dx = b(dy, x) into the table of wrong layers."""
    WRONG.append(Judged(name, lambda: Function(f, b), says))


def wrong_variant(says, name, base, inputs=(X,), context=(), **methods):
    """Put a right class with other methods into the table of wrong layers."""
    WRONG.append(Judged(name, type(base.__name__, (base,), methods), says, inputs, context))


def spoilt(says, name, spoil):
    """Put a tanh whose dx is spoilt into the table of wrong layers."""
    wrong_variant(says, name, Tanh, backward=lambda self, dy, x: spoil(dy * self.slope(x), dy, x))


def weight(*shape):
    return Parameter(np.zeros(shape))


def softmax(a):
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def outer(x, dy):
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


@right()
class Tanh(Layer):
    """tanh, a function without parameters"""

    def forward(self, x):
        return np.tanh(x), x

    def backward(self, dy, x):
        return dy * self.slope(x)

    def slope(self, x):
        return 1.0 - np.tanh(x) ** 2


@right()
class Affine(Layer):
    """x W + b, with a square W"""

    def __init__(self):
        self.W, self.b = weight(C, C), weight(C)

    def forward(self, x):
        return x @ self.W.data + self.b.data, x

    def backward(self, dy, x):
        self.W.grad += self.gradient_of_W(x, dy)
        self.b.grad += dy.reshape(-1, C).sum(axis=0)
        return dy @ self.W.data.T

    def gradient_of_W(self, x, dy):
        return outer(x, dy)


@right()
class Gelu(Layer):
    """GELU, the approximation with tanh"""

    def forward(self, x):
        t = np.tanh(0.8 * (x + 0.04 * x**3))
        return 0.5 * x * (1.0 + t), (x, t)

    def backward(self, dy, cache):
        x, t = cache
        return dy * 0.5 * (1.0 + t + x * (1.0 - t * t) * 0.8 * (1.0 + 0.12 * x * x))


@right()
class Relu(Layer):
    """ReLU, with a mask of booleans in the cache"""

    def forward(self, x):
        return np.maximum(x, 0.0), x > 0

    def backward(self, dy, positive):
        return dy * positive


@right()
class Normed(Layer):
    """layer norm with gamma and beta"""

    def __init__(self):
        self.gamma, self.beta = weight(C), weight(C)

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        rstd = 1.0 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
        return self.gamma.data * centred * rstd + self.beta.data, (centred * rstd, rstd)

    def backward(self, dy, cache):
        h, rstd = cache
        self.gamma.grad += (dy * h).reshape(-1, C).sum(axis=0)
        self.beta.grad += dy.reshape(-1, C).sum(axis=0)
        return self.gradient_of_x(dy * self.gamma.data, h, rstd)

    def gradient_of_x(self, dh, h, rstd):
        dh = dh - dh.mean(axis=-1, keepdims=True)
        return rstd * (dh - h * (dh * h).mean(axis=-1, keepdims=True))


@right()
class Softmax(Layer):
    """softmax over the features"""

    def forward(self, x):
        p = softmax(x)
        return p, p

    def backward(self, dy, p):
        return p * (dy - (dy * p).sum(axis=-1, keepdims=True))


@right(context=(MASK_OF_KEYS,))
class Attention(Layer):
    """attention of x to itself, with a mask for padding"""

    def forward(self, x, allowed):
        scores = np.where(allowed, x @ x.swapaxes(1, 2) / np.sqrt(C), -1e9)
        p = softmax(scores)
        return p @ x, (x, p, allowed)

    def backward(self, dy, cache):
        x, p, allowed = cache
        dp = dy @ x.swapaxes(1, 2)
        ds = self.scores(p, dp, allowed)
        return p.swapaxes(1, 2) @ dy + ds @ x + ds.swapaxes(1, 2) @ x

    def scores(self, p, dp, allowed):
        return np.where(allowed, p * (dp - (dp * p).sum(axis=-1, keepdims=True)), 0.0) / np.sqrt(C)


@right(inputs=(), context=(IDS,))
class Lookup(Layer):
    """a table of embeddings, looked up with ids"""

    def __init__(self):
        self.E = weight(7, C)

    def forward(self, ids):
        return self.E.data[ids], ids

    def backward(self, dy, ids):
        np.add.at(self.E.grad, ids, dy)


@right()
class Dropped(Layer):
    """dropout that draws its mask in forward"""

    def forward(self, x, rng=None):
        mask = (rng.random(x.shape) > 0.4) / 0.6
        return x * mask, mask

    def backward(self, dy, mask):
        return dy * mask


right_function("the product of two inputs", lambda a, b: a * b, lambda dy, a, b: (dy * b, dy * a), inputs=TWO)


@right()
class Block(Layer):
    """a residual block of the library's layers"""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.norm, self.inner = LayerNorm(C, dtype=np.float64), Linear(C, C, rng=rng, dtype=np.float64)

    def forward(self, x):
        h, cache_norm = self.norm.forward(x)
        y, cache = self.inner.forward(h)
        return x + y, (cache_norm, cache)

    def backward(self, dy, cache):
        return self.direct(dy) + self.norm.backward(self.inner.backward(dy, cache[1]), cache[0])

    def direct(self, dy):
        return dy


@right()
class Twice(Layer):
    """a matrix that is used twice"""

    def __init__(self):
        self.W = weight(C, C)

    def forward(self, x):
        h = np.tanh(x @ self.W.data)
        return h @ self.W.data, (x, h)

    def backward(self, dy, cache):
        x, h = cache
        dz = (dy @ self.W.data.T) * (1.0 - h * h)
        self.W.grad += outer(x, dz) + self.second_use(h, dy)
        return dz @ self.W.data.T

    def second_use(self, h, dy):
        return outer(h, dy)


@right()
class Listed(Layer):
    """parameters in a list, and inside another layer in a tuple"""

    def __init__(self):
        self.scales, self.layers = [weight(C), weight(C)], (Affine(), Affine())

    def forward(self, x):
        h, first = self.layers[0].forward(x * self.scales[0].data)
        y, second = self.layers[1].forward(h * self.scales[1].data)
        return y, (x, h, first, second)

    def backward(self, dy, cache):
        x, h, first, second = cache
        d = self.layers[1].backward(dy, second)
        self.scales[1].grad += (d * h).reshape(-1, C).sum(axis=0)
        d = self.layers[0].backward(d * self.scales[1].data, first)
        self.scales[0].grad += (d * x).reshape(-1, C).sum(axis=0)
        return d * self.scales[0].data


@right()
class Convolved(Layer):
    """a causal convolution of width 2"""

    def __init__(self):
        self.W = weight(2, C, C)

    def before(self, x):
        return np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)

    def after(self, d):
        return np.concatenate([d[:, 1:], np.zeros_like(d[:, :1])], axis=1)

    def forward(self, x):
        return x @ self.W.data[0] + self.before(x) @ self.W.data[1], x

    def backward(self, dy, x):
        self.W.grad[0] += outer(x, dy)
        self.W.grad[1] += outer(self.before(x), dy)
        return dy @ self.W.data[0].T + self.after(dy @ self.W.data[1].T)


@right()
class Recurrent(Layer):
    """a recurrent layer, h = tanh(x + h W)"""

    def __init__(self):
        self.W = weight(C, C)

    def forward(self, x):
        hs = [np.zeros_like(x[:, 0])]
        for t in range(x.shape[1]):
            hs.append(np.tanh(x[:, t] + hs[-1] @ self.W.data))
        return np.stack(hs[1:], axis=1), hs

    def backward(self, dy, hs):
        dx, dh = np.zeros_like(dy), np.zeros_like(dy[:, 0])
        for t in reversed(range(dy.shape[1])):
            dx[:, t] = (dy[:, t] + dh) * (1.0 - hs[t + 1] ** 2)
            self.W.grad += hs[t].T @ dx[:, t]
            dh = self.through_time(dx[:, t] @ self.W.data.T)
        return dx

    def through_time(self, dh):
        return dh


@right()
class Gate(Layer):
    """x sigmoid(x W)"""

    def __init__(self):
        self.W = weight(C, C)

    def forward(self, x):
        g = sigmoid(x @ self.W.data)
        return x * g, (x, g)

    def backward(self, dy, cache):
        x, g = cache
        dz = dy * x * g * (1.0 - g)
        self.W.grad += outer(x, dz)
        return dy * g + self.through_gate(dz @ self.W.data.T)

    def through_gate(self, d):
        return d


@right(inputs=(X, draw(2, *SHAPE)))
class SquaredError(Layer):
    """the mean squared error, a Python float"""

    def forward(self, y, target):
        difference = y - target
        loss = (difference * difference).mean()
        return (complex(loss) if np.iscomplexobj(loss) else float(loss)), difference

    def backward(self, dloss, difference):
        dy = self.upstream(dloss) * 2.0 * difference / difference.size
        return dy, -dy

    def upstream(self, dloss):
        return dloss


right_function(
    "the cross-entropy of each token, with ids as targets",
    lambda x, targets: -np.log(np.take_along_axis(softmax(x), targets[..., None], axis=-1)),
    lambda dy, x, targets: dy * (softmax(x) - np.eye(C)[targets]),
    context=(IDS % C,),
)


def share(mask):
    return (mask / np.maximum(mask.sum(axis=1, keepdims=True), 1))[..., None]


right_function(
    "the mean over the tokens that are not padding",
    lambda x, mask: (x * share(mask)).sum(axis=1),
    lambda dy, x, mask: dy[:, None] * share(mask),
    context=(MASK,),
)
right_function(
    "the largest feature of each token",
    lambda x: x.max(axis=-1),
    lambda dy, x: dy[..., None] * (np.arange(x.shape[-1]) == x.argmax(axis=-1)[..., None]),
)


@right()
class Positions(Layer):
    """learnt positions for exactly three tokens"""

    def __init__(self):
        self.P = weight(T, C)

    def forward(self, x):
        return x + self.P.data, None

    def backward(self, dy, cache):
        self.P.grad += dy.sum(axis=0)
        return dy


@right()
class Constant(Layer):
    """a constant table, made read-only"""

    def __init__(self):
        self.table = np.sin(np.arange(40.0 * C)).reshape(40, C)
        self.table.setflags(write=False)

    def forward(self, x):
        return x * self.table[: x.shape[1]], None

    def backward(self, dy, cache):
        return dy * self.table[: dy.shape[1]]


@right(says="the output depends on table, a plain array that parameters() does not find")
class Table(Constant):
    """a constant table that might be learnt (cannot tell)"""

    def __init__(self):
        self.table = np.sin(np.arange(40.0 * C)).reshape(40, C)


def summed(x):
    y = np.cumsum(np.tanh(x), axis=1)
    return y, y[:, -1]


def summed_backward(dy, x):
    d = np.flip(np.cumsum(np.flip(dy[0], 1), axis=1), 1) + dy[1][:, None]
    return d / np.cosh(x) ** 2


@right(says="not with T = 131: the layer does not take that")
class LimitedPositions(Layer):
    """learned positions for at most 32 tokens"""

    def __init__(self):
        self.P = weight(32, C)

    def forward(self, x):
        return x + self.P.data[: x.shape[1]], None

    def backward(self, dy, cache):
        self.P.grad[: dy.shape[1]] += dy.sum(axis=0)
        return dy


@right(says="not with B = 1, B = 7, B = T = 3: the layer does not take that")
class Sequences(Layer):
    """a factor for each of two sequences, a Parameter with two names, and one without numbers"""

    def __init__(self):
        self.g, self.nothing = weight(2, 1, C), weight(C, 0)
        self.again = self.g

    def forward(self, x):
        assert len(x) == 2
        return x * self.again.data + (x @ self.nothing.data).sum(), x

    def backward(self, dy, x):
        self.g.grad += (dy * x).sum(axis=1, keepdims=True)
        return dy * self.g.data


def seen(lengths, x):
    return (np.arange(x.shape[1]) < lengths[:, None])[..., None]


right_function("x itself, and dy itself", lambda x: x, lambda dy, x: dy)
right_function("a view of x, the tokens reversed", lambda x: x[:, ::-1], lambda dy, x: dy[:, ::-1])
right_function(
    "a sum, with a read-only dx", lambda x: x.sum(axis=1), lambda dy, x: np.broadcast_to(dy[:, None], x.shape)
)
right_function(
    "two heads, which must divide C",
    lambda x: x.reshape(*x.shape[:-1], 2, -1).swapaxes(1, 2),
    lambda dy, x: dy.swapaxes(1, 2).reshape(x.shape),
    says="not with every size = 1: the layer does not take that",
)
right_function(
    "sums of as many tokens as the mask has in front",
    lambda x, mask: np.stack([row[:n].sum(axis=0) for row, n in zip(x, mask.sum(axis=1), strict=True)]),
    lambda dy, x, mask: dy[:, None] * seen(mask.sum(axis=1), x),
    context=(MASK,),
)
right_function(
    "an input without axes, and another of other axes",
    lambda a, b: np.tanh(a) * b,
    lambda dy, a, b: ((dy * b).sum() / np.cosh(a) ** 2, dy * np.tanh(a)),
    inputs=(np.array(0.7), X),
)
right_function("two outputs, the second of them the last state", summed, summed_backward)
right_function("gradients in a list", lambda a, b: a + np.sin(b), lambda dy, a, b: [dy, dy * np.cos(b)], inputs=TWO)
right_function("|x - 0.3|, which is not analytic", lambda x: np.abs(x - 0.3), lambda dy, x: dy * np.sign(x - 0.3))


@right()
class BatchNorm(Layer):
    """x less the mean of the batch, with running means in a plain array"""

    def __init__(self):
        self.mean = np.zeros(C)

    def forward(self, x):
        mean = x.mean(axis=(0, 1))
        self.mean += 0.1 * (mean.real - self.mean)
        return x - mean, None

    def backward(self, dy, cache):
        return dy - dy.mean(axis=(0, 1))


@right()
class Mixing(Layer):
    """tokens mixed by a square matrix, in place in an array of its own"""

    def __init__(self):
        self.M = weight(T, T)

    def forward(self, x):
        y = np.einsum("ts,bsc->btc", self.M.data, x)
        y *= 0.5
        y += x
        return y, x

    def backward(self, dy, x):
        self.M.grad += 0.5 * np.einsum("btc,bsc->ts", dy, x)
        dx = 0.5 * np.einsum("ts,btc->bsc", self.M.data, dy)
        dx += dy
        return dx


@wrong("what it needs belongs in the cache, not in self.x")
class KeepsInput(Tanh):
    """keeps its input in self"""

    def forward(self, x):
        self.x = x
        return np.tanh(x), None

    def backward(self, dy, cache):
        return dy * self.slope(self.x)


@wrong("backward gives another gradient if a second forward came in between")
class KeepsStack(Tanh):
    """keeps its inputs on a stack in self"""

    def __init__(self):
        self.stack = []

    def forward(self, x):
        self.stack.append(x)
        return np.tanh(x), None

    def backward(self, dy, cache):
        return dy * self.slope(self.stack.pop())


@wrong("backward changes dy")
class ZeroesDy(Relu):
    """writes zeros into dy"""

    def backward(self, dy, positive):
        dy[~positive] = 0.0
        return dy


@wrong("forward changes input")
class OverwritesX(Relu):
    """overwrites x in forward"""

    def forward(self, x):
        positive = x > 0
        x *= positive
        return x, positive


@wrong("backward changes its cache")
class SpoilsCache(Layer):
    """overwrites its cache in backward"""

    def forward(self, x):
        return np.sin(x), np.cos(x)

    def backward(self, dy, slope):
        slope *= dy
        return slope


@wrong("a second forward overwrites the output of the first")
class ReusesOutput(Layer):
    """returns the same array each time"""

    def __init__(self):
        self.buffers = {}

    def forward(self, x):
        buffer = self.buffers.setdefault((x.shape, x.dtype), np.empty_like(x))
        np.sin(x, out=buffer)
        return buffer, x

    def backward(self, dy, x):
        return dy * np.cos(x)


@wrong("forward changes the parameter W")
class NormalizesWeights(Affine):
    """normalizes its weights in place in forward"""

    def forward(self, x):
        self.W.data /= np.linalg.norm(self.W.data)
        return super().forward(x)


@wrong("weights['W'] is a Parameter that parameters() does not find")
class InDict(Layer):
    """a Parameter inside a dict"""

    def __init__(self):
        self.weights = {"W": weight(C, C)}

    def forward(self, x):
        return x @ self.weights["W"].data, x

    def backward(self, dy, x):
        self.weights["W"].grad += outer(x, dy)
        return dy @ self.weights["W"].data.T


@wrong("the output depends on W, a plain array that parameters() does not find")
class PlainArray(Layer):
    """a plain array as weight"""

    def __init__(self):
        self.W = np.random.default_rng(0).standard_normal((C, C))

    def forward(self, x):
        return x @ self.W, None

    def backward(self, dy, cache):
        return dy @ self.W.T


@wrong("the gradient of W is assigned, not added")
class Assigns(Affine):
    """assigns the gradient of W"""

    def backward(self, dy, x):
        self.W.grad = outer(x, dy)
        self.b.grad += dy.reshape(-1, C).sum(axis=0)
        return dy @ self.W.data.T


@wrong("a later backward changes the gradient that this one returned")
class ReusesDx(Tanh):
    """one buffer for all dx"""

    def backward(self, dy, x):
        buffer = vars(self).setdefault(f"buffer of {x.shape}", np.empty(x.shape))
        return np.multiply(dy, self.slope(x), out=buffer)


spoilt(
    "input is wrong only where the index of T is 4 or more",
    "is wrong for T > 4",
    lambda dx, dy, x: dx * np.where(np.arange(x.shape[1]) < 4, 1.0, 0.9)[:, None],
)
spoilt("but not with B = 1\n", "is wrong for B = 1", lambda dx, dy, x: dx * (0.5 if len(x) == 1 else 1.0))
spoilt("but not with B = 7\n", "is wrong for B > 2", lambda dx, dy, x: dx * (0.5 if len(x) > 2 else 1.0))
spoilt("but not with T = 131\n", "is wrong for T > 64", lambda dx, dy, x: dx * (0.5 if x.shape[1] > 64 else 1.0))
spoilt(
    "but not with T = C = 4\n  -> input is the transpose of the right one",
    "is transposed for T = C",
    lambda dx, dy, x: dx.swapaxes(1, 2) if x.shape[1] == x.shape[2] else dx,
)
spoilt(
    "backward gives another gradient if dy is not contiguous in memory, such as a transposed view",
    "dy in the order of its memory",
    lambda dx, dy, x: dx + dy.ravel("K").reshape(x.shape) - dy,
)
spoilt(
    "the gradient of input is wrong where rows of dy are 0, as padding gives: backward must be linear in dy",
    "dx times the share of rows of dy that are not 0",
    lambda dx, dy, x: dx * dy.any(axis=-1).mean(),
)
spoilt("input is not finite when dy is 0", "divides by the length of dy", lambda dx, dy, x: dx * (dy / dy).mean())
spoilt(
    "the gradient of input is wrong if dy is 9.1e-13 times as large: backward must be linear in dy",
    "drops small numbers of dy",
    lambda dx, dy, x: dx * (np.abs(dy) >= 1e-3),
)
wrong_variant(
    "forward gives another output if an input is not contiguous in memory, such as a transposed view",
    "x in the order of its memory",
    Tanh,
    forward=lambda self, x: (np.tanh(x.ravel("K").reshape(x.shape)), x),
)
wrong_variant(
    "but not with T = 1",
    "is wrong for T = 1",
    Softmax,
    backward=lambda self, dy, p: Softmax.backward(self, dy, p) if p.shape[1] > 1 else p * dy,
)
wrong_variant(
    "the gradient of input is wrong only where input is at least",
    "GELU that is wrong in its tail",
    Gelu,
    backward=lambda self, dy, cache: np.where(cache[0] > 4.0, 0.999, 1.0) * Gelu.backward(self, dy, cache),
)
wrong_variant(
    "W is the transpose of the right one",
    "the gradient of W, transposed",
    Affine,
    gradient_of_W=lambda self, x, dy: outer(dy, x),
)
wrong_variant(
    "everywhere = 1/(B T)",
    "the gradient of W, a mean over B T",
    Affine,
    gradient_of_W=lambda self, x, dy: outer(x, dy) / (x.shape[0] * x.shape[1]),
)
wrong_variant("everywhere = B", "dx times the batch", Tanh, backward=lambda self, dy, x: len(x) * dy * self.slope(x))
wrong_function(
    "everywhere = sqrt(C)",
    "x x^T / sqrt(C) without the scale in backward",
    lambda x: x @ x.swapaxes(1, 2) / np.sqrt(x.shape[-1]),
    lambda dy, x: dy @ x + dy.swapaxes(1, 2) @ x,
)
wrong_variant("the sign is wrong", "dx with the wrong sign", Tanh, slope=lambda self, x: np.tanh(x) ** 2 - 1.0)
wrong_function("everywhere = 1/2", "x^2 without the factor 2", lambda x: x * x, lambda dy, x: dy * x)
wrong_variant(
    "one path is missing: input also reaches the output directly (a residual)",
    "a residual block without the direct path",
    Block,
    direct=lambda self, dy: 0.0,
)
wrong_function(
    "one path is missing: what input lacks is the same in each row",
    "x - mean(x), the mean taken for a constant",
    lambda x: x - x.mean(axis=-1, keepdims=True) + 0.1 * x * x,
    lambda dy, x: dy * (1.0 + 0.2 * x),
)
wrong_variant(
    "one path is missing: what input lacks is a multiple of the output in each row",
    "a softmax with the diagonal of its Jacobian only",
    Softmax,
    backward=lambda self, dy, p: p * dy,
)


@wrong("what input lacks is a multiple of input - mean(input) in each row")
class Standardized(Layer):
    """a norm with fixed gains whose backward takes sigma for a constant"""

    gains = np.linspace(0.5, 2.0, C)
    gains.setflags(write=False)

    def forward(self, x):
        around = x - x.mean(axis=-1, keepdims=True)
        sigma = np.sqrt((around**2).mean(axis=-1, keepdims=True))
        return self.gains * around / sigma, sigma

    def backward(self, dy, sigma):
        d = self.gains * dy
        return (d - d.mean(axis=-1, keepdims=True)) / sigma


wrong_variant(
    "Is there a float32 on the way",
    "a backward in float32",
    Affine,
    gradient_of_W=lambda self, x, dy: outer(x, dy).astype(np.float32),
)


@wrong("input is wrong only where the mask (argument 1) is False", context=(MASK,))
class PaddingToo(Layer):
    """padded tokens that get a gradient"""

    def forward(self, x, mask):
        return np.where(mask[..., None], np.sin(x), 0.0), x

    def backward(self, dy, x):
        return dy * np.cos(x)


@wrong("E is wrong only at tokens that occur twice in one sequence", inputs=(), context=(IDS,))
class LastWins(Lookup):
    """an embedding that forgets repeated ids"""

    def backward(self, dy, ids):
        dE = np.zeros_like(self.E.data)
        dE[ids] = dy
        self.E.grad += dE


wrong_variant(
    "input is wrong only where the output is 0",
    "dropout without its mask in backward",
    Dropped,
    backward=lambda self, dy, mask: dy / 0.6,
)
wrong_variant("WRONG at W[", "a shared matrix with the gradient of one use", Twice, second_use=lambda self, h, dy: 0.0)
wrong_variant(
    "input is right where the index of T is 2, and wrong elsewhere",
    "a recurrent layer without the gradient through time",
    Recurrent,
    through_time=lambda self, dh: 0.0 * dh,
)
wrong_variant(
    "does not depend on dy",
    "a loss that ignores dloss",
    SquaredError,
    inputs=(X, draw(2, *SHAPE)),
    upstream=lambda self, dloss: 1.0,
)


def main() -> None:
    for truth, table in (("right", RIGHT), ("wrong", WRONG)):
        for judged in table:
            report = judged.check()
            said = [*report.broken, *report.doubts, *report.clues]
            said = said or [str(check).split("  ")[-1] for check in report.failures] or [report.notes[0]]
            print(f"| {judged.name} | {truth} | {report.verdict} | {'; '.join(said)} |")


if __name__ == "__main__":
    main()
