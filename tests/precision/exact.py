"""Numbers of 100 digits that know their derivatives, so that a definition of y is also a definition of its gradients.

Each number remembers what it was computed from, with the partial derivatives. `differentiate` applies the chain rule
from the result back to the inputs, one operation at a time. It knows addition, multiplication, division and a few
functions, but no layer, so it shares nothing with the derivations that it checks.

100 digits are 50 more than are needed: a definition may lose 50 of them when it subtracts nearly equal numbers.
"""

import itertools

import numpy as np
from mpmath import mp

DIGITS = 100
_serial_numbers = itertools.count()


class Exact:
    """A number, what it was computed from, and its size: what a sum would be if all its terms were positive."""

    __slots__ = ("gradient", "gradient_size", "parents", "serial_number", "size", "value")

    def __init__(self, value, size=None, parents=()):
        self.value = mp.mpf(value)
        self.size = abs(self.value) if size is None else size
        self.parents = parents  # (number, dself/dnumber)
        self.gradient = self.gradient_size = mp.zero
        self.serial_number = next(_serial_numbers)

    def __add__(self, other):
        return total([self, exact(other)])

    def __sub__(self, other):
        return total([self, -exact(other)])

    def __rsub__(self, other):
        return exact(other) - self

    def __neg__(self):
        return Exact(-self.value, self.size, ((self, -mp.one),))

    def __mul__(self, other):
        return dot([self], [exact(other)])

    def __truediv__(self, other):
        other = exact(other)
        y = self.value / other.value
        size = self.size / abs(other.value)
        return Exact(y, size, ((self, 1 / other.value), (other, -y / other.value)))

    __radd__, __rmul__ = __add__, __mul__


def exact(x):
    """x as an Exact number."""
    return x if isinstance(x, Exact) else Exact(x)


def total(terms):
    """The sum of numbers."""
    return Exact(mp.fsum(x.value for x in terms), mp.fsum(x.size for x in terms), [(x, mp.one) for x in terms])


def dot(xs, ys):
    """The sum of products x y."""
    value = mp.fdot((x.value, y.value) for x, y in zip(xs, ys, strict=True))
    size = mp.fdot((x.size, y.size) for x, y in zip(xs, ys, strict=True))
    parents = [pair for x, y in zip(xs, ys, strict=True) for pair in ((x, y.value), (y, x.value))]
    return Exact(value, size, parents)


def exp(x):
    y = mp.exp(x.value)
    return Exact(y, None, ((x, y),))


def log(x):
    return Exact(mp.log(x.value), None, ((x, 1 / x.value),))


def sqrt(x):
    y = mp.sqrt(x.value)
    return Exact(y, None, ((x, 1 / (2 * y)),))


def tanh(x):
    return Exact(mp.tanh(x.value), None, ((x, 1 / mp.cosh(x.value) ** 2),))


def normal_cdf(x):
    """The share of a standard normal distribution below x; its derivative is the density."""
    density = mp.exp(-(x.value**2) / 2) / mp.sqrt(2 * mp.pi)
    return Exact(mp.erfc(-x.value / mp.sqrt(2)) / 2, None, ((x, density),))


def array_of(numbers):
    """An array of Exact numbers from an array of mpmath's."""
    return np.frompyfunc(Exact, 1, 1)(np.asarray(numbers, object)) if np.ndim(numbers) else as_array(Exact(numbers))


def as_array(number):
    """A 0-d array that holds one number."""
    array = np.empty((), object)
    array[()] = number
    return array


def differentiate(y, dy):
    """Set the gradient of every number from which the array y was computed, given the gradient dy of y."""
    reached, waiting = {}, list(y.flat)
    while waiting:
        x = waiting.pop()
        if x.serial_number not in reached:
            reached[x.serial_number] = x
            waiting += [parent for parent, _ in x.parents]
    for x, dx in zip(y.flat, np.asarray(dy, object).flat, strict=True):
        x.gradient += dx
        x.gradient_size += abs(dx)
    for number in sorted(reached, reverse=True):  # what was computed last comes first
        x = reached[number]
        if x.gradient_size:
            for parent, slope in x.parents:
                parent.gradient += x.gradient * slope
                parent.gradient_size += x.gradient_size * abs(slope)
