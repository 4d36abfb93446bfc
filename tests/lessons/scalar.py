"""A GPT on single numbers with an automatic gradient: a second opinion on lessons/one_file/gpt.py.

It shares nothing with that file but the formulas: each number is an object that remembers how it came about, as in
Karpathy's micrograd and microgpt. `python -m tests.lessons.scalar` measures what that costs, step against step.
"""

import math
import statistics
import time
import timeit

import numpy as np

from tests.lessons.one_file import load


class Value:
    """A number, and the numbers it was made of, each with the derivative with respect to it."""

    __slots__ = ("data", "grad", "sources")

    def __init__(self, data, sources=()):
        self.data, self.sources, self.grad = data, sources, 0.0

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, ((self, other.data), (other, self.data)))

    __radd__, __rmul__ = __add__, __mul__

    def power(self, exponent):
        return Value(self.data**exponent, ((self, exponent * self.data ** (exponent - 1)),))

    def exp(self):
        return Value(math.exp(self.data), ((self, math.exp(self.data)),))

    def log(self):
        return Value(math.log(self.data), ((self, 1 / self.data),))

    def relu(self):
        return Value(max(0.0, self.data), ((self, float(self.data > 0)),))

    def backward(self):
        """Give each number that this one was made of its gradient."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            value, done = stack.pop()
            if done:
                order.append(value)
            elif id(value) not in seen:
                seen.add(id(value))
                stack.append((value, True))
                stack.extend((source, False) for source, _ in value.sources)
        self.grad = 1.0
        for value in reversed(order):
            for source, slope in value.sources:
                source.grad += slope * value.grad


def times(x, W):
    return [sum(a * row[j] for a, row in zip(x, W, strict=True)) for j in range(len(W[0]))]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def norm(x):
    r = (dot(x, x) * (1 / len(x)) + 1e-5).power(-0.5)
    return [each * r for each in x]


def softmax(s):
    e = [each.exp() for each in s]
    total = sum(e).power(-1)
    return [each * total for each in e]


def loss_of(weights, num_heads, ids, targets):
    """The loss of one piece of text, character by character; `weights` in the order in which gpt.py makes them."""
    E, P, *layers = weights
    C = len(E[0])
    D = C // num_heads
    memory = [[] for _ in layers[::4]]  # of each layer: the keys and values so far
    losses = []
    for t, (read, target) in enumerate(zip(ids, targets, strict=True)):
        x = [e + p for e, p in zip(E[read], P[t], strict=True)]
        for number, seen in enumerate(memory):
            W_qkv, W_o, W_1, W_2 = layers[4 * number : 4 * number + 4]
            qkv = times(norm(x), W_qkv)
            q, k, v = qkv[:C], qkv[C : 2 * C], qkv[2 * C :]
            seen.append((k, v))
            mixed = []
            for start in range(0, C, D):
                part = slice(start, start + D)
                p = softmax([dot(q[part], key[part]) * D**-0.5 for key, _ in seen])
                mixed += [sum(w * value[i] for w, (_, value) in zip(p, seen, strict=True)) for i in range(C)[part]]
            x = [a + b for a, b in zip(x, times(mixed, W_o), strict=True)]
            hidden = [each.relu() for each in times(norm(x), W_1)]
            x = [a + b for a, b in zip(x, times(hidden, W_2), strict=True)]
        y = norm(x)
        p = softmax([dot(y, row) for row in E])
        losses.append(p[target].log() * -1)
    return sum(losses) * (1 / len(losses))


def as_values(arrays):
    """Matrices of numbers -> matrices of Values."""
    return [[[Value(float(number)) for number in row] for row in array] for array in arrays]


def main():
    """Processor time of both on the sizes of microgpt: a name of 8 letters, one layer, 16 features, 4 heads."""
    gpt = load("gpt")
    model = gpt.GPT(27, T=16, C=16, H=4, N=1)
    ids = np.random.default_rng(0).integers(27, size=9)

    def by_hand():
        loss, dz = gpt.cross_entropy(model.forward(ids[None, :-1]), ids[None, 1:])
        model.backward(dz)
        return loss

    def by_values():
        loss = loss_of(as_values([p.data for p in gpt.parameters]), 4, ids[:-1], ids[1:])
        loss.backward()
        return loss.data

    medians = {}
    for name, step in (("by hand", by_hand), ("scalars", by_values)) * 2:
        medians[name] = statistics.median(timeit.repeat(step, timer=time.process_time, repeat=20, number=1))
        print(f"{name:<8} {1e3 * medians[name]:8.2f} ms of processor time for forward and backward, loss {step():.4f}")
    print(f"ratio {medians['scalars'] / medians['by hand']:.0f}")


if __name__ == "__main__":
    main()
