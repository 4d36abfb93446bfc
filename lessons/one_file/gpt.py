"""A GPT in one file, forward and backward by hand: it reads a text, and learns to write like it, letter by letter.

    python lessons/one_file/gpt.py                 the text is Python's own documentation; about a minute
    python lessons/one_file/gpt.py my.txt Once     a text of yours, and how the sample is to begin

NumPy alone, no autograd. transformer.py, beside this file, has the paper's model and explains more; dx is dLoss/dx.
Shapes are B pieces of T characters, C features for each, in H heads of D = C / H features, and V different characters.
"""

import os
import sys
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for matrices this small, threads cost more than they save
import numpy as np

rng, parameters = np.random.default_rng(0), []  # the source of chance, and everything that is learned


class Matrix:
    """A random matrix W that is learned, and its gradient, to which every backward pass adds. m and v are for Adam."""

    def __init__(self, rows, columns):
        self.data = rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)  # so y is about as large as x
        self.grad, self.m, self.v = np.zeros((3, rows, columns), np.float32)
        parameters.append(self)

    def forward(self, x):  # y = x W, for each character by itself
        self.x = x
        return x @ self.data

    def backward(self, dy):
        self.grad += np.tensordot(self.x, dy, axes=((0, 1), (0, 1)))  # all characters share W: sum over B and T
        return dy @ self.data.T


class Norm:
    """Divide the features of each character by their root mean square (RMSNorm, here without a learned scale)."""

    def forward(self, x):
        self.r = ((x**2).mean(axis=-1, keepdims=True) + 1e-5) ** -0.5
        self.y = x * self.r
        return self.y

    def backward(self, dy):
        return self.r * (dy - self.y * (dy * self.y).mean(axis=-1, keepdims=True))  # a longer x would give the same y


class Attention:
    """Each character looks at itself and at those before it."""

    def __init__(self, C, H):
        self.W_qkv, self.W_o, self.H = Matrix(C, 3 * C), Matrix(C, C), H

    def forward(self, x):
        B, T, C = x.shape
        self.q, self.k, self.v = self.W_qkv.forward(x).reshape(B, T, 3, self.H, -1).transpose(2, 0, 3, 1, 4)
        s = self.q @ self.k.swapaxes(-1, -2) / (C // self.H) ** 0.5  # q, k, v: (B, H, T, D), so s is (B, H, T, T)
        s = np.where(np.tri(T, dtype=bool), s, -np.inf)  # no character sees a later one
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        self.p = e / e.sum(axis=-1, keepdims=True)
        return self.W_o.forward((self.p @ self.v).swapaxes(1, 2).reshape(B, T, C))

    def backward(self, dy):
        B, T, C = dy.shape
        do = self.W_o.backward(dy).reshape(B, T, self.H, -1).swapaxes(1, 2)
        dp, dv = do @ self.v.swapaxes(-1, -2), self.p.swapaxes(-1, -2) @ do
        ds = self.p * (dp - (self.p * dp).sum(axis=-1, keepdims=True)) / (C // self.H) ** 0.5
        dq, dk = ds @ self.k, ds.swapaxes(-1, -2) @ self.q
        return self.W_qkv.backward(np.stack([dq, dk, dv]).transpose(1, 3, 0, 2, 4).reshape(B, T, 3 * C))


class FeedForward:
    """max(0, x W_1) W_2."""

    def __init__(self, C):
        self.W_1, self.W_2 = Matrix(C, 4 * C), Matrix(4 * C, C)

    def forward(self, x):
        self.a = self.W_1.forward(x)
        return self.W_2.forward(np.maximum(self.a, 0))

    def backward(self, dy):
        return self.W_1.backward(self.W_2.backward(dy) * (self.a > 0))


class GPT:
    """Guesses each character from those before it. Each part reads a normalized x, and adds its answer to x."""

    def __init__(self, V, T=64, C=128, H=4, N=2):
        self.E, self.P, self.norm = Matrix(V, C), Matrix(T, C), Norm()  # vectors of characters and of positions
        self.parts = [(Norm(), part) for _ in range(N) for part in (Attention(C, H), FeedForward(C))]

    def forward(self, ids):  # (B, T) -> z, a score for each character, (B, T, V)
        self.ids, x = ids, self.E.data[ids] + self.P.data[: ids.shape[1]]
        for norm, part in self.parts:
            x = x + part.forward(norm.forward(x))
        self.x = self.norm.forward(x)
        return self.x @ self.E.data.T

    def backward(self, dz):
        self.E.grad += np.tensordot(dz, self.x, axes=((0, 1), (0, 1)))
        dx = self.norm.backward(dz @ self.E.data)
        for norm, part in reversed(self.parts):
            dx = dx + norm.backward(part.backward(dx))
        self.P.grad[: dx.shape[1]] += dx.sum(axis=0)
        np.add.at(self.E.grad, self.ids, dx)


def cross_entropy(z, target):
    """The mean of -log p of the characters that came, in nats -> the loss, dz."""
    z = z - z.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    came = np.eye(z.shape[-1], dtype=z.dtype)[target]
    return -(came * log_p).sum() / target.size, (np.exp(log_p) - came) / target.size


def adam(t, rate):  # step t = 1, 2 ...
    for p in parameters:
        p.m += 0.1 * (p.grad - p.m)
        p.v += 0.01 * (p.grad**2 - p.v)
        p.data -= rate * (p.m / (1 - 0.9**t)) / (np.sqrt(p.v / (1 - 0.99**t)) + 1e-8)
        p.grad[...] = 0


def main(text, prompt, steps=1000, B=32, T=64):
    letters = sorted(set(text))
    read, held_out = np.split(np.array([letters.index(letter) for letter in text]), [len(text) * 9 // 10])
    model = GPT(len(letters), T)
    for step in range(1, steps + 1):
        pieces = read[rng.integers(len(read) - T, size=(B, 1)) + np.arange(T + 1)]
        loss, dz = cross_entropy(model.forward(pieces[:, :-1]), pieces[:, 1:])
        model.backward(dz)
        adam(step, rate=0.004 * (1 - step / (steps + 1)))
        print(f"\rstep {step} of {steps}, {loss / np.log(2):.2f} bits per character", end="", flush=True)
    pieces = held_out[np.arange(0, min(len(held_out), 60_000) - T, T)[:, None] + np.arange(T + 1)]
    loss, _ = cross_entropy(model.forward(pieces[:, :-1]), pieces[:, 1:])
    print(f"\n{loss / np.log(2):.2f} bits per character of text that it has not read\n\n{prompt}", end="")
    ids = [letters.index(letter) for letter in prompt if letter in letters] or [0]  # leaves out unknown characters
    for _ in range(400):  # one character after another: the text so far goes in, and the next one is drawn
        z = model.forward(np.array([ids[-T:]]))[0, -1].astype(float) / 0.8  # temperature: below 1 favours likely ones
        ids.append(rng.choice(len(z), p=np.exp(z - z.max()) / np.exp(z - z.max()).sum()))
        print(letters[ids[-1]], end="", flush=True)
    print()


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text("utf8") if sys.argv[1:] else "\n".join(topics.values())
    sys.exit(main(text, sys.argv[2] if sys.argv[2:] else "The ") if len(text) > 1000 else "this text is too short")
