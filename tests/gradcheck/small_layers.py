"""Small layers to be checked: right ones whose single steps a test can replace by a wrong one."""

import numpy as np

from minitransformer.core import Layer, Parameter
from tests.helpers import random_array

B, T, C = 2, 3, 4
SHAPE = (B, T, C)


def draw(seed, *shape):
    """Random values that nobody may write to, from a generator that no other code uses."""
    return random_array(np.random.default_rng([77, seed]), *shape)


X = draw(0, *SHAPE)


class Function(Layer):
    """y = f(x) and dx = b(dy, x), of one input or several: a layer without parameters, out of two functions."""

    def __init__(self, f, b):
        self.f, self.b = f, b

    def forward(self, *inputs):
        return self.f(*inputs), inputs

    def backward(self, dy, inputs):
        return self.b(dy, *inputs)


class Affine(Layer):
    """y = g tanh(x W + b) with a square W, so that its transpose has the right shape too."""

    def __init__(self, size=C):
        self.W = Parameter(np.zeros((size, size)))
        self.b = Parameter(np.zeros(size))
        self.g = Parameter(np.zeros(size))

    def forward(self, x, rng=None):
        h = np.tanh(x @ self.W.data + self.b.data)
        return self.g.data * h, (x, h)

    def backward(self, dy, cache):
        x, h = cache
        dz = dy * self.g.data * (1.0 - h * h)
        self.add(self.W, self.weight_gradient(x, dz))
        self.add(self.b, self.bias_gradient(dz))
        self.add(self.g, self.scale_gradient(dy, h))
        return self.input_gradient(dz)

    def input_gradient(self, dz):
        return dz @ self.W.data.T

    def weight_gradient(self, x, dz):
        return np.einsum("bti,bto->io", x, dz)

    def bias_gradient(self, dz):
        return dz.sum(axis=(0, 1))

    def scale_gradient(self, dy, h):
        return (dy * h).sum(axis=(0, 1))

    def add(self, parameter, gradient):
        parameter.grad += gradient


def names(checks):
    """The names of TensorChecks."""
    return [check.name for check in checks]
