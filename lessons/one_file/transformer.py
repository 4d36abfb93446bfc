"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in one file: forward and backward, by hand.

    python lessons/one_file/transformer.py                  learn to reverse words in half a minute, and reverse a few
    python lessons/one_file/transformer.py maps straw       ... and reverse these

NumPy alone, no autograd; no dropout and no beam search. Read from top to bottom: below each forward pass stands its
backward pass. There, dx means dLoss/dx: how the loss changes with each number of x. Shapes: B words; T letters that the
decoder reads, S that the encoder reads; C features of a letter, in H heads of D = C / H; V tokens (letters and three).
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads: these matrices are too small for threads
import numpy as np

rng = np.random.default_rng(0)
parameters = []  # everything that is learned


TOKENS, PAD, LONGEST = " <>abcdefghijklmnopqrstuvwxyz", 0, 10  # padding, begin, end, letters; an id is a place in it


def solve(word):
    """The task. To let it learn to sort instead, return "".join(sorted(word))."""
    return word[::-1]


def random_words(count, shortest=1):
    return ["".join(rng.choice(list(TOKENS[3:]), rng.integers(shortest, LONGEST + 1))) for _ in range(count)]


def to_ids(words):
    """For "abc", the encoder reads abc, the decoder reads <cba and has to write cba>. All three are padded."""
    texts = [(word, "<" + solve(word), solve(word) + ">") for word in words]
    ids = [[[TOKENS.index(letter) for letter in text.ljust(LONGEST + 1)] for text in three] for three in texts]
    return np.array(ids).swapaxes(0, 1)  # three arrays (B, LONGEST + 1)


class Parameter:
    """An array that is learned, and its gradient, to which every backward pass adds; m, v and mean belong to adam()."""

    def __init__(self, data):
        self.data, (self.grad, self.m, self.v, self.mean) = data, np.zeros((4, *data.shape))
        parameters.append(self)


class Linear:
    """y = x W + b, for each letter by itself."""

    def __init__(self, n_in, n_out):
        limit = np.sqrt(6 / (n_in + n_out))  # Glorot: y is about as large as x
        self.W, self.b = Parameter(rng.uniform(-limit, limit, (n_in, n_out))), Parameter(np.zeros(n_out))

    def forward(self, x):  # (B, T, n_in) -> (B, T, n_out)
        self.x = x
        return x @ self.W.data + self.b.data

    def backward(self, dy):
        self.W.grad += np.tensordot(self.x, dy, axes=((0, 1), (0, 1)))  # x^T dy, summed: all letters share W
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
        return self.E.data[ids] * np.sqrt(C) + positions  # the features of both are now of size about 1

    def backward(self, dx, ids):  # it is used for source and target, so it has to be told which ids
        np.add.at(self.E.grad, ids, dx * np.sqrt(dx.shape[-1]))  # grad[ids] += ... would count repeated tokens once


class LayerNorm:
    """Give the features of each letter mean 0 and variance 1, then scale and shift them."""

    def __init__(self, C):
        self.gamma, self.beta = Parameter(np.ones(C)), Parameter(np.zeros(C))

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        self.r = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)  # 1 / standard deviation
        self.x_hat = centred * self.r
        return self.gamma.data * self.x_hat + self.beta.data

    def backward(self, dy):
        self.gamma.grad += (dy * self.x_hat).sum(axis=(0, 1))
        self.beta.grad += dy.sum(axis=(0, 1))
        d = dy * self.gamma.data  # dLoss/dx_hat
        d = self.r * (d - self.x_hat * (d * self.x_hat).mean(axis=-1, keepdims=True))  # dLoss/dcentred: also through r
        return d - d.mean(axis=-1, keepdims=True)  # and each x also moves the mean


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
    """A letter of x asks, with a query q, the letters of memory (what it may read): keys k, values v (section 3.2)."""

    def __init__(self, C, H):
        self.W_q, self.W_k, self.W_v, self.W_o = (Linear(C, C) for _ in range(4))
        self.H = H

    def split_heads(self, x):  # (B, T, C) -> (B, H, T, D): each head has its own D of the C features
        return x.reshape(*x.shape[:2], self.H, -1).swapaxes(1, 2)

    def merge_heads(self, x):  # (B, H, T, D) -> (B, T, C)
        return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def forward(self, x, memory, allowed):  # (B, T, C), (B, S, C), and True where a letter may look
        self.q, self.k = self.split_heads(self.W_q.forward(x)), self.split_heads(self.W_k.forward(memory))
        self.v = self.split_heads(self.W_v.forward(memory))
        s = self.q @ self.k.swapaxes(-1, -2) / np.sqrt(self.q.shape[-1])  # (B, H, T, S), of size 1
        s = np.where(allowed, s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))  # the largest becomes exp(0) = 1, the forbidden ones 0
        self.p = e / e.sum(axis=-1, keepdims=True)
        return self.W_o.forward(self.merge_heads(self.p @ self.v))  # each letter gets a mixture of the values

    def backward(self, dy):
        do = self.split_heads(self.W_o.backward(dy))
        dp, dv = do @ self.v.swapaxes(-1, -2), self.p.swapaxes(-1, -2) @ do  # both factors of o = p v
        ds = self.p * (dp - (self.p * dp).sum(axis=-1, keepdims=True))  # p_i changes with s_j by p_i ((i == j) - p_j)
        ds = ds / np.sqrt(self.q.shape[-1])  # from here on for q k^T alone
        dq, dk = ds @ self.k, ds.swapaxes(-1, -2) @ self.q  # both factors of q k^T
        dx = self.W_q.backward(self.merge_heads(dq))
        return dx, self.W_k.backward(self.merge_heads(dk)) + self.W_v.backward(self.merge_heads(dv))  # dx and dmemory


class Transformer:
    """Figure 1: the encoder reads a word; the decoder, from that and the tokens so far, guesses the next."""

    def __init__(self, V, C=64, H=4, F=128, N=2):
        self.embedding = Embedding(V, C)
        self.encoder = [(Attention(C, H), LayerNorm(C), FeedForward(C, F), LayerNorm(C)) for _ in range(N)]
        self.decoder = [
            (Attention(C, H), LayerNorm(C), Attention(C, H), LayerNorm(C), FeedForward(C, F), LayerNorm(C))
            for _ in range(N)
        ]

    def forward(self, source, read):  # ids (B, S) and (B, T) -> z, a score for each token to write, (B, T, V)
        self.source, self.read = source, read
        seen = (source != PAD)[:, None, None, :]  # (B, 1, 1, S): nobody looks at the padding of the source
        past = np.tri(read.shape[1], dtype=bool)  # (T, T): no looking ahead, so none at the padding, which comes last
        x, y = self.embedding.forward(source), self.embedding.forward(read)
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
        dy, dx = dz @ self.embedding.E.data, 0  # dx is for what the encoder made
        for attention, norm1, cross, norm2, ffn, norm3 in reversed(self.decoder):
            dy = norm3.backward(dy)
            dy = norm2.backward(dy + ffn.backward(dy))  # y + f(y): the gradient goes past f, and through it
            d, dmemory = cross.backward(dy)
            dx = dx + dmemory  # all layers of the decoder read the same x
            dy = norm1.backward(dy + d)
            dy = dy + sum(attention.backward(dy))  # y is both x and memory here: two gradients
        for attention, norm1, ffn, norm2 in reversed(self.encoder):
            dx = norm2.backward(dx)
            dx = norm1.backward(dx + ffn.backward(dx))
            dx = dx + sum(attention.backward(dx))
        self.embedding.backward(dy, self.read)
        self.embedding.backward(dx, self.source)


def cross_entropy(z, write, smoothing=0.1):
    """Mean cross-entropy, padding left out -> loss, dz. Label smoothing keeps it above 0.639 (section 5.4)."""
    z = z - z.max(axis=-1, keepdims=True)  # changes no p, and keeps exp from overflowing
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    wanted = (1 - smoothing) * np.eye(z.shape[-1])[write] + smoothing / z.shape[-1]  # each row sums to 1
    weight = (write != PAD)[..., None] / (write != PAD).sum()
    return -(weight * wanted * log_p).sum(), weight * (np.exp(log_p) - wanted)  # dz: what it says minus what is wanted


def adam(t, C=64, warmup=200, factor=0.2):
    """Step t = 1, 2, ...: every number moves about equally far, however large its gradient (section 5.3)."""
    rate = factor * C**-0.5 * min(t**-0.5, t * warmup**-1.5)  # equation 3, with a factor: it rises, then it falls
    for p in parameters:
        p.m += 0.1 * (p.grad - p.m)  # running means of the gradient, and of its square
        p.v += 0.02 * (p.grad**2 - p.v)
        p.data -= rate * (p.m / (1 - 0.9**t)) / (np.sqrt(p.v / (1 - 0.98**t)) + 1e-9)  # m and v began at 0
        p.mean += 0.02 * (p.data - p.mean)  # over about 50 steps: steadier than p.data itself (compare section 6.1)
        p.grad[...] = 0


def answer(model, words):
    """Write the token with the highest score, let the decoder read it, and so on (greedy decoding)."""
    source, written = to_ids(words)[0], np.full((len(words), 1), TOKENS.index("<"))
    for _ in range(LONGEST + 1):
        written = np.hstack([written, model.forward(source, written)[:, -1:].argmax(axis=-1)])
    return ["".join(TOKENS[i] for i in row[1:]).split(">")[0] for row in written]  # up to the first ">"


def show(model, word):
    """Print the answer, and beside each of its letters how much each head of the last layer looks at each letter."""
    written = answer(model, [word])[0]
    weights = model.decoder[-1][2].p[0]  # (H, T, S): what cross-attention keeps from its last forward pass
    print(f"\n{word} -> {written}\n     " + "   ".join([word] * len(weights)) + "   (for each head; @: looks most)")
    for t, letter in enumerate(written):
        parts = ["".join(" .:-=+*#%@"[int(9.99 * w)] for w in head[t, : len(word)]) for head in weights]
        print(f"   {letter} " + "   ".join(parts))


def main(words, steps=700):
    for word in words:
        if not 0 < len(word) <= LONGEST or set(word) - set(TOKENS[3:]):
            sys.exit(f"{word!r} is not a word of 1 to {LONGEST} lower-case letters")
    model, unseen = Transformer(len(TOKENS)), random_words(1000, shortest=5)  # there are too few shorter ones to spare
    for step in range(1, steps + 1):
        source, read, write = to_ids([word for word in random_words(64) if word not in unseen])
        loss, dz = cross_entropy(model.forward(source, read), write)
        model.backward(dz)
        adam(step)
        if step % 20 == 0:
            print(f"\rstep {step} of {steps}, loss {loss:.3f}", end="", flush=True)
    for p in parameters:
        p.data = p.mean  # from now on
    right = sum(solve(word) == text for word, text in zip(unseen, answer(model, unseen), strict=True))
    print(f"\n{right} of {len(unseen)} words that it has never seen are answered without a mistake")
    for word in words:
        show(model, word)


if __name__ == "__main__":
    main(sys.argv[1:] or ["hello", "attention"])
