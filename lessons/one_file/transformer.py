"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in one file: forward and backward, by hand.

    python lessons/one_file/transformer.py                  learn to reverse words in half a minute, and reverse a few
    python lessons/one_file/transformer.py maps straw       ... and reverse these

NumPy alone, no autograd. Read from top to bottom: below each forward pass stands its backward pass. There, dx is short
for dLoss/dx: how the loss changes with each number of x, so it has the shape of x. Shapes are B words of T (target) or
S (source) letters, C features for each letter, in H heads of D = C / H features, and V tokens in all.
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # these matrices are too small to be worth sharing among threads
import numpy as np

rng = np.random.default_rng(0)
parameters = []  # everything that is learned


class Parameter:
    """An array that is learned, and its gradient, to which every backward pass adds. Adam needs the other three."""

    def __init__(self, data):
        self.data, (self.grad, self.m, self.v, self.mean) = data, np.zeros((4, *data.shape), data.dtype)
        parameters.append(self)


class Linear:
    """y = x W + b, for each letter by itself."""

    def __init__(self, n_in, n_out):
        limit = np.sqrt(6 / (n_in + n_out))  # Glorot: so y is about as large as x
        self.W, self.b = Parameter(rng.uniform(-limit, limit, (n_in, n_out))), Parameter(np.zeros(n_out))

    def forward(self, x):  # (B, T, n_in) -> (B, T, n_out)
        self.x = x
        return x @ self.W.data + self.b.data

    def backward(self, dy):
        self.W.grad += np.tensordot(self.x, dy, axes=((0, 1), (0, 1)))  # all letters share W: sum over B and T
        self.b.grad += dy.sum(axis=(0, 1))
        return dy @ self.W.data.T


class Embedding:
    """A vector for each token, a row of E, plus one for its position (sections 3.4 and 3.5)."""

    def __init__(self, V, C):
        self.E = Parameter(rng.normal(0, C**-0.5, (V, C)))

    def forward(self, ids):  # (B, T) -> (B, T, C)
        C = self.E.data.shape[1]
        angles = np.arange(ids.shape[1])[:, None] / 10000 ** (np.arange(0, C, 2) / C)  # (T, C / 2)
        positions = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(-1, C)  # sin, cos, sin, cos ...
        return self.E.data[ids] * np.sqrt(C) + positions

    def backward(self, dx, ids):
        np.add.at(self.E.grad, ids, dx * np.sqrt(dx.shape[-1]))  # a token that occurs twice is blamed twice


class LayerNorm:
    """Give the features of each letter mean 0 and variance 1, then scale and shift them."""

    def __init__(self, C):
        self.gamma, self.beta = Parameter(np.ones(C)), Parameter(np.zeros(C))

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        self.r = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        self.x_hat = centred * self.r
        return self.gamma.data * self.x_hat + self.beta.data

    def backward(self, dy):
        self.gamma.grad += (dy * self.x_hat).sum(axis=(0, 1))
        self.beta.grad += dy.sum(axis=(0, 1))
        d = dy * self.gamma.data  # x reaches x_hat directly, through the mean, and through r: three terms
        return self.r * (d - d.mean(-1, keepdims=True) - self.x_hat * (d * self.x_hat).mean(-1, keepdims=True))


class FeedForward:
    """max(0, x W_1 + b_1) W_2 + b_2 (equation 2)."""

    def __init__(self, C, F):
        self.inner, self.outer = Linear(C, F), Linear(F, C)

    def forward(self, x):
        self.a = self.inner.forward(x)
        return self.outer.forward(np.maximum(self.a, 0))

    def backward(self, dy):
        return self.inner.backward(self.outer.backward(dy) * (self.a > 0))  # what was cut to 0 has no influence


class Attention:
    """Each letter of x looks at the letters of a memory: softmax(q k^T / sqrt(D)) v in each head (section 3.2)."""

    def __init__(self, C, H):
        self.W_q, self.W_k, self.W_v, self.W_o = (Linear(C, C) for _ in range(4))
        self.H = H

    def split(self, x):  # (B, T, C) -> (B, H, T, D): each head has its own D of the C features
        return x.reshape(*x.shape[:2], self.H, -1).swapaxes(1, 2)

    def merge(self, x):  # (B, H, T, D) -> (B, T, C)
        return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def forward(self, x, memory, allowed):  # (B, T, C), (B, S, C), and who may look at whom: (B or 1, 1, T or 1, S)
        self.q, self.k = self.split(self.W_q.forward(x)), self.split(self.W_k.forward(memory))
        self.v = self.split(self.W_v.forward(memory))
        s = self.q @ self.k.swapaxes(-1, -2) / np.sqrt(self.q.shape[-1])  # (B, H, T, S), a score for each pair
        s = np.where(allowed, s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))  # the largest becomes exp(0) = 1, the forbidden ones 0
        self.p = e / e.sum(axis=-1, keepdims=True)
        return self.W_o.forward(self.merge(self.p @ self.v))  # each letter gets a mixture of the values

    def backward(self, dy):
        do = self.split(self.W_o.backward(dy))
        dp, dv = do @ self.v.swapaxes(-1, -2), self.p.swapaxes(-1, -2) @ do  # both factors of o = p v
        ds = self.p * (dp - (self.p * dp).sum(axis=-1, keepdims=True))  # is it better than the average I look at?
        ds = ds / np.sqrt(self.q.shape[-1])
        dq, dk = ds @ self.k, ds.swapaxes(-1, -2) @ self.q  # both factors of s = q k^T
        dx = self.W_q.backward(self.merge(dq))
        return dx, self.W_k.backward(self.merge(dk)) + self.W_v.backward(self.merge(dv))  # dx and dmemory


class Transformer:
    """Figure 1: the encoder reads the source, and the decoder guesses each token of the target from those before it."""

    def __init__(self, V, C=64, H=4, F=128, N=2):
        self.embedding = Embedding(V, C)
        self.encoder = [(Attention(C, H), LayerNorm(C), FeedForward(C, F), LayerNorm(C)) for _ in range(N)]
        self.decoder = [
            (Attention(C, H), LayerNorm(C), Attention(C, H), LayerNorm(C), FeedForward(C, F), LayerNorm(C))
            for _ in range(N)
        ]

    def forward(self, source, target):  # ids (B, S) and (B, T) -> a score for each token, (B, T, V)
        self.source, self.target = source, target
        seen = (source != PAD)[:, None, None, :]  # nobody looks at padding,
        past = np.tri(target.shape[1], dtype=bool)  # and the decoder does not look ahead
        x, y = self.embedding.forward(source), self.embedding.forward(target)
        for attention, norm1, ffn, norm2 in self.encoder:
            x = norm1.forward(x + attention.forward(x, x, seen))
            x = norm2.forward(x + ffn.forward(x))
        for attention, norm1, cross, norm2, ffn, norm3 in self.decoder:
            y = norm1.forward(y + attention.forward(y, y, past))
            y = norm2.forward(y + cross.forward(y, x, seen))
            y = norm3.forward(y + ffn.forward(y))
        self.y = y
        return y @ self.embedding.E.data.T  # the same E again: how well does y fit each token?

    def backward(self, dz):
        self.embedding.E.grad += np.tensordot(dz, self.y, axes=((0, 1), (0, 1)))
        dy, dx = dz @ self.embedding.E.data, 0
        for attention, norm1, cross, norm2, ffn, norm3 in reversed(self.decoder):
            dy = norm3.backward(dy)
            dy = norm2.backward(dy + ffn.backward(dy))  # y + f(y): the gradient goes past f, and through it
            d, dmemory = cross.backward(dy)
            dx = dx + dmemory  # all layers of the decoder read the same x
            dy = norm1.backward(dy + d)
            dy = dy + sum(attention.backward(dy))  # here y is both the one who looks and the memory
        for attention, norm1, ffn, norm2 in reversed(self.encoder):
            dx = norm2.backward(dx)
            dx = norm1.backward(dx + ffn.backward(dx))
            dx = dx + sum(attention.backward(dx))
        self.embedding.backward(dy, self.target)
        self.embedding.backward(dx, self.source)


def cross_entropy(z, target, smoothing=0.1):
    """The mean of -log p over all tokens but padding, with label smoothing (section 5.4) -> the loss, dz."""
    log_p = z - z.max(axis=-1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(axis=-1, keepdims=True))
    wanted = (1 - smoothing) * np.eye(z.shape[-1])[target] + smoothing / z.shape[-1]
    weight = (target != PAD)[..., None] / (target != PAD).sum()
    return -(weight * wanted * log_p).sum(), weight * (np.exp(log_p) - wanted)  # dz: what it says minus what is wanted


def adam(t, C=64, warmup=200, factor=0.2):
    """Step t = 1, 2, ... of Adam: about as far for each number, however large its gradient (section 5.3)."""
    rate = factor * C**-0.5 * min(t**-0.5, t * warmup**-1.5)  # equation 3: first it rises, then it falls
    for p in parameters:
        p.m += 0.1 * (p.grad - p.m)  # running means of the gradient, and of its square
        p.v += 0.02 * (p.grad**2 - p.v)
        p.data -= rate * (p.m / (1 - 0.9**t)) / (np.sqrt(p.v / (1 - 0.98**t)) + 1e-9)
        p.mean += 0.02 * (p.data - p.mean)  # of about the last 50 steps: better than the last one alone (section 6.1)
        p.grad[...] = 0


PAD, BOS, EOS, LONGEST = 0, 1, 2, 10  # padding, begin and end of a word; then come the letters
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def random_words(count, shortest=1):
    return ["".join(rng.choice(list(LETTERS), rng.integers(shortest, LONGEST + 1))) for _ in range(count)]


def to_ids(words):
    """What the encoder reads; what the decoder reads; and what the decoder is to write, which is one letter ahead."""
    source, read, write = np.zeros((3, len(words), LONGEST + 1), int)
    for i, word in enumerate(words):
        ids, n = [LETTERS.index(letter) + 3 for letter in word], len(word)
        source[i, :n], read[i, : n + 1], write[i, : n + 1] = ids, [BOS, *ids[::-1]], [*ids[::-1], EOS]
    return source, read, write


def reverse(model, words):
    """Write the token with the highest score, let the decoder read it, and so on (greedy decoding)."""
    source, written = to_ids(words)[0], np.full((len(words), 1), BOS)
    for _ in range(LONGEST + 1):
        best = model.forward(source, written)[:, -1].argmax(axis=-1)
        written = np.hstack([written, best[:, None]])
    return ["".join((" <>" + LETTERS)[i] for i in row[1:]).split(">")[0] for row in written]  # ">" is its end


def show(model, word):
    """Print the answer, and for each of its letters which letters of the word the heads of the last layer look at."""
    answer = reverse(model, [word])[0]
    weights = model.decoder[-1][2].p[0]  # (H, T, S)
    print(f"\n{word} -> {answer}\n     " + "   ".join([word] * len(weights)))
    for t, letter in enumerate(answer):
        rows = ["".join(" .:-=+*#%@"[int(9.99 * w)] for w in head[t, : len(word)]) for head in weights]
        print(f"   {letter} " + "   ".join(rows))


def main(words, steps=700):
    for word in words:
        if not 0 < len(word) <= LONGEST or set(word) - set(LETTERS):
            sys.exit(f"{word!r} is not a word of 1 to {LONGEST} small letters")
    model, unseen = Transformer(V=len(LETTERS) + 3), random_words(1000, shortest=5)
    for step in range(1, steps + 1):
        source, read, write = to_ids([word for word in random_words(64) if word not in unseen])
        loss, dz = cross_entropy(model.forward(source, read), write)
        model.backward(dz)
        adam(step)
        if step % 20 == 0:
            print(f"\rstep {step} of {steps}, loss {loss:.3f}", end="", flush=True)
    for p in parameters:
        p.data = p.mean
    right = sum(answer == word[::-1] for word, answer in zip(unseen, reverse(model, unseen), strict=True))
    print(f"\n{right} of {len(unseen)} words that it has never seen are reversed without a mistake")
    for word in words:
        show(model, word)


if __name__ == "__main__":
    main(sys.argv[1:] or ["hello", "attention"])
