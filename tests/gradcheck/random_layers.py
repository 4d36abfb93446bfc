"""Random layers, right and wrong, to try the checker on: `draw_case(seed, right)`.

A layer is a chain of pieces. It is analytic, kinked (at least one piece has kinks), or mixed: an analytic chain plus a
small multiple of a kinked one. A wrong layer is the same layer with one mistake in the backward pass of one piece. The
size of a mistake, where it has one, is between 1e-4 and 1, uniform on a logarithmic scale.

A mistake counts only if it shows: for a random upstream gradient, some gradient must be off by at least VISIBLE of its
largest entry. This is decided by comparing with the right layer, without the checker.
"""

from typing import Any, NamedTuple

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.system.generators import make_generator
from tests.gradcheck.pieces import ANALYTIC, KINKED, REDUCTIONS, UNSAFE

KINDS = ("analytic", "kinked", "mixed")
SHAPES = ((5,), (2, 3), (3, 7), (1, 4), (2, 3, 4), (2, 3, 4), (2, 2, 3, 4), (2, 3, 64))
SCALES = (1.0, 1.0, 1.0, 1.0, 1e-3, 1e-2, 1e2, 1e3)
VISIBLE = 1e-5
ROUNDING = 1e-9
SEED = 3  # of the dropout


class Case(NamedTuple):
    """A layer to check, with what is known about it."""

    layer: Layer
    x: np.ndarray
    kind: str
    mistake: str  # "" if the layer is right
    text: str


class Piece(Layer):
    """A layer whose gradients a test can spoil: `wrong` replaces them all, `spoil` {name: function} changes them."""

    wrong: Any = None
    spoil: dict = {}  # noqa: RUF012 - never written to
    assigns = False

    def backward(self, dy, cache):
        gradients = (self.wrong or self.gradients)(dy, cache)
        gradients = {name: self.spoil.get(name, np.array)(gradient) for name, gradient in gradients.items()}
        for name, parameter in self.named_parameters():
            if self.assigns:
                parameter.grad[...] = gradients[name]
            else:
                parameter.grad += gradients[name]
        return gradients["input"]


class Function(Piece):
    """A function of the table, without parameters."""

    def __init__(self, name, f, b, mistakes):
        self.name, self.f, self.b = name, f, b
        self.mistakes = {kind: lambda dy, x, b=b: {"input": b(dy, x)} for kind, b in mistakes.items()}

    def forward(self, x, rng=None):
        return self.f(x), x

    def gradients(self, dy, x):
        return {"input": self.b(dy, x)}


def flat(x):
    return x.reshape(-1, x.shape[-1])


class Linear(Piece):
    """y = x W + b, or its absolute value."""

    def __init__(self, inputs, outputs, bias, absolute=False):
        self.name = f"{'|' * absolute}linear {inputs} to {outputs}{'|' * absolute}"
        self.W, self.absolute, self.size = Parameter(np.zeros((inputs, outputs))), absolute, inputs**-0.5
        if bias:
            self.b = Parameter(np.zeros(outputs))
        self.mistakes = {
            "first row only": lambda dy, cache: self.gradients(dy, cache, flat(cache[0])[:1], flat(dy)[:1]),
            "mean over the batch": lambda dy, cache: self.gradients(dy, cache, scale=1.0 / len(flat(dy))),
        }
        if inputs == outputs:
            self.mistakes["transposed W"] = lambda dy, cache: self.gradients(dy, cache, W=self.W.data.T)
            self.mistakes["transposed dW"] = lambda dy, cache: self.turned(self.gradients(dy, cache))

    def turned(self, gradients):
        return gradients | {"W": gradients["W"].T}

    def forward(self, x, rng=None):
        y = self.size * (x @ self.W.data)
        if hasattr(self, "b"):
            y = y + self.b.data
        return (np.abs(y), (x, np.sign(y))) if self.absolute else (y, (x, 1.0))

    def gradients(self, dy, cache, x=None, d=None, W=None, scale=1.0):
        sign = cache[1]
        x, d = (flat(cache[0]), flat(dy * sign)) if x is None else (x, d)
        W = self.W.data if W is None else W
        gradients = {"W": scale * self.size * (x.T @ d), "input": self.size * (dy * sign) @ W.T}
        return gradients | ({"b": scale * d.sum(axis=0)} if hasattr(self, "b") else {})


class Scale(Piece):
    """y = gamma x + beta."""

    def __init__(self, size):
        self.name, self.gamma, self.beta = "scale", Parameter(np.zeros(size)), Parameter(np.zeros(size))
        self.mistakes = {
            "first row only": lambda dy, x: self.gradients(dy, x) | {"gamma": (flat(dy) * flat(x))[0]},
            "mean over the batch": lambda dy, x: self.gradients(dy, x) | {"beta": flat(dy).mean(axis=0)},
            "missing gamma": lambda dy, x: self.gradients(dy, x) | {"input": dy},
        }

    def forward(self, x, rng=None):
        return self.gamma.data * x + self.beta.data, x

    def gradients(self, dy, x):
        dgamma = (flat(dy) * flat(x)).sum(axis=0)
        return {"gamma": dgamma, "beta": flat(dy).sum(axis=0), "input": dy * self.gamma.data}


class Table(Piece):
    """y = x + E[ids], with a table of about 5,000 entries."""

    def __init__(self, shape, rng):
        rows = max(4, 5000 // shape[-1])
        self.name, self.E = f"table of {rows} rows", Parameter(np.zeros((rows, shape[-1])))
        self.ids = rng.integers(0, 4 if rng.random() < 0.5 else rows, shape[:-1])
        self.mistakes = {"missing sum": lambda dy, x: {"E": self.last(dy), "input": dy}}

    def last(self, dy):
        dE = np.zeros(self.E.data.shape)
        dE[self.ids] = dy
        return dE

    def forward(self, x, rng=None):
        return x + self.E.data[self.ids], None

    def gradients(self, dy, x):
        dE = np.zeros(self.E.data.shape)
        np.add.at(dE, self.ids, dy)
        return {"E": dE, "input": dy}


class MeanAbs(Piece):
    """y = x + mean|W|, with a W of any shape."""

    def __init__(self, shape):
        self.name, self.W = f"mean|W| of {shape}", Parameter(np.zeros(shape))
        self.mistakes = {
            "missing term": lambda dy, x: {"W": np.zeros(shape), "input": dy},
            "mask forgotten": lambda dy, x: {"W": np.full(shape, dy.sum() / self.W.data.size), "input": dy},
        }

    def forward(self, x, rng=None):
        return x + np.abs(self.W.data).mean(), x

    def gradients(self, dy, x):
        return {"W": dy.sum() * np.sign(self.W.data) / self.W.data.size, "input": dy}


class PReLU(Piece):
    """y = x where x > 0, else a x."""

    def __init__(self, size):
        self.name, self.a = "prelu", Parameter(np.zeros(size))
        self.mistakes = {
            "mask forgotten": lambda dy, x: self.gradients(dy, x) | {"a": flat(dy * x).sum(axis=0)},
            "missing slope": lambda dy, x: self.gradients(dy, x) | {"input": dy * (x > 0)},
        }

    def forward(self, x, rng=None):
        return np.where(x > 0, x, self.a.data * x), x

    def gradients(self, dy, x):
        da = flat(dy * x * (x <= 0)).sum(axis=0)
        return {"a": da, "input": np.where(x > 0, dy, self.a.data * dy)}


class Maxout(Piece):
    """y = max(x W, x V)."""

    def __init__(self, size):
        self.name, self.W, self.V = "maxout", Parameter(np.zeros((size, size))), Parameter(np.zeros((size, size)))
        self.mistakes = {
            "masks exchanged": lambda dy, x: self.gradients(dy, x, exchange=True),
            "missing term": lambda dy, x: self.gradients(dy, x) | {"input": self.parts(dy, x)[0] @ self.W.data.T},
        }

    def parts(self, dy, x):
        first = x @ self.W.data > x @ self.V.data
        return dy * first, dy * ~first

    def forward(self, x, rng=None):
        return np.maximum(x @ self.W.data, x @ self.V.data), x

    def gradients(self, dy, x, exchange=False):
        left, right = self.parts(dy, x)[:: -1 if exchange else 1]
        dx = left @ self.W.data.T + right @ self.V.data.T
        return {"W": flat(x).T @ flat(left), "V": flat(x).T @ flat(right), "input": dx}


class Dropout(Piece):
    """Three of ten entries dropped, by the generator that forward gets."""

    def __init__(self):
        self.name, self.mistakes = "dropout", {"mask forgotten": lambda dy, kept: {"input": dy / 0.7}}

    def forward(self, x, rng=None):
        kept = rng.random(x.shape) < 0.7
        return x * kept / 0.7, kept

    def gradients(self, dy, kept):
        return {"input": dy * kept / 0.7}


class Chain(Layer):
    """One piece after the other."""

    def __init__(self, pieces):
        self.pieces = pieces

    def forward(self, x, rng=None):
        caches = []
        for piece in self.pieces:
            x, cache = piece.forward(x, rng)
            caches.append(cache)
        return x, caches

    def backward(self, dy, caches):
        for piece, cache in zip(reversed(self.pieces), reversed(caches), strict=True):
            dy = piece.backward(dy, cache)
        return dy

    def all_pieces(self):
        return [inner for piece in self.pieces for inner in getattr(piece, "all_pieces", lambda p=piece: [p])()]


class Sum(Layer):
    """y = a(x) + size b(x)."""

    forgets = False  # whether backward leaves out the second term

    def __init__(self, a, b, size):
        self.a, self.b, self.size = a, b, size

    def forward(self, x, rng=None):
        (y, cache), (z, other) = self.a.forward(x, rng), self.b.forward(x, rng)
        return y + self.size * z, (cache, other)

    def backward(self, dy, caches):
        dx = self.a.backward(dy, caches[0])
        return dx if self.forgets else dx + self.b.backward(self.size * dy, caches[1])

    def all_pieces(self):
        return self.a.all_pieces() + self.b.all_pieces()


def function(table, rng, names=None):
    name = str(rng.choice(list(names or table)))
    return Function(name, *table[name])


def analytic_piece(rng, shape):
    choice = rng.integers(0, 10)
    if choice == 0:
        return Linear(shape[-1], shape[-1], bias=rng.random() < 0.5)
    if choice == 1:
        return Scale(shape[-1])
    if choice == 2:
        return Table(shape, rng) if rng.random() < 0.4 else Dropout()
    return function(UNSAFE if choice == 3 else ANALYTIC, rng)


def kinked_piece(rng, shape):
    choice, size = rng.integers(0, 10), shape[-1]
    if choice == 0:
        return Linear(size, size, bias=True, absolute=True)
    if choice == 1:
        return MeanAbs([(3,), (7, 5), (50, 100)][rng.integers(0, 3)])
    if choice == 2:
        return PReLU(size) if rng.random() < 0.5 else Maxout(size)
    return function(KINKED, rng)


def draw_chain(rng, kind, shape):
    """One to three pieces of one kind; at least one is kinked if the kind says so."""
    count = int(rng.integers(1, 4))
    place = int(rng.integers(0, count)) if kind == "kinked" else -1
    pieces = [
        kinked_piece(rng, shape)
        if i == place or (kind == "kinked" and rng.random() < 0.3)
        else analytic_piece(rng, shape)
        for i in range(count)
    ]
    if kind == "kinked" and rng.random() < 0.2 and shape[-1] > 1:
        pieces.append(function(REDUCTIONS, rng))
    elif rng.random() < 0.15:
        pieces.append(Linear(shape[-1], 78 if shape[-1] == 64 else 3, bias=True))
    return Chain(pieces)


def draw_layer(rng, kind, shape):
    if kind != "mixed":
        return draw_chain(rng, kind, shape)
    size = float(10 ** rng.uniform(-3, -1))
    return Sum(
        Chain([analytic_piece(rng, shape) for _ in range(rng.integers(1, 3))]), Chain([kinked_piece(rng, shape)]), size
    )


def draw_input(rng, shape):
    """Normal numbers of some scale, or one of ten times small integers, which are often equal or 0."""
    x = rng.standard_normal(shape)
    return np.round(2 * x) if rng.random() < 0.1 else float(rng.choice(SCALES)) * x


def spoil_one(rng, layer):
    """Put one mistake into the layer -> its name."""
    if isinstance(layer, Sum) and rng.random() < 0.25:
        layer.forgets = True
        return f"missing term of size {layer.size:.1e}"
    pieces = layer.all_pieces()
    piece = pieces[rng.integers(0, len(pieces))]
    if rng.random() < 0.4:
        name = str(rng.choice(list(piece.mistakes)))
        piece.wrong = piece.mistakes[name]
        return f"{name} in {piece.name}"
    parameters = [name for name, _ in piece.named_parameters()]
    target = str(rng.choice(["input", *parameters]))
    size = float(10 ** rng.uniform(-4, 0)) * float(rng.choice([-1, 1]))
    place, seed = float(rng.random()), int(rng.integers(0, 2**31))
    kind = str(rng.choice(["factor", "sign", "one entry", "noise", "zero", *(["assigned"] if parameters else [])]))
    if kind == "assigned":
        piece.assigns = True
        return f"assigned in {piece.name}"

    def one_entry(gradient):
        gradient = np.array(gradient)
        gradient.flat[int(place * gradient.size)] *= 1.0 + size
        return gradient

    def noise(gradient):
        pattern = np.random.default_rng(seed).standard_normal(np.shape(gradient))
        return gradient + size * np.abs(gradient).max(initial=0.0) * pattern

    changes = {
        "factor": lambda gradient: (1.0 + size) * gradient,
        "sign": lambda gradient: -gradient,
        "one entry": one_entry,
        "noise": noise,
        "zero": lambda gradient: 0.0 * gradient,
    }
    piece.spoil = {target: changes[kind]}
    sized = f" of size {size:.1e}" if kind in ("factor", "one entry", "noise") else ""
    return f"{kind}{sized} of {target} in {piece.name}"


def gradients(layer, x, seed):
    """{name: gradient} of the second backward pass, for a random upstream gradient, and {name: the least that shows}.

    A gradient is not known better than the loss is: a softmax that is summed up has gradients of 1e-17, all rounding.
    None if anything is not finite, or all gradients are 0.
    """
    randomize_parameters(layer)
    with np.errstate(all="ignore"):
        for _ in range(2):
            before = {name: np.array(parameter.grad) for name, parameter in layer.named_parameters()}
            y, cache = layer.forward(x.copy(), rng=make_generator(SEED))
            dy = np.random.default_rng(seed).standard_normal(np.shape(y))
            dx = layer.backward(dy, cache)
        found = {"input": dx} | {name: p.grad - before[name] for name, p in layer.named_parameters()}
    values = {"input": x} | {name: parameter.data for name, parameter in layer.named_parameters()}
    with np.errstate(all="ignore"):  # what overflows is left out below
        least = {name: ROUNDING * np.linalg.norm(dy * y) / np.abs(value).max() for name, value in values.items()}
    finite = np.isfinite(y).all() and all(np.isfinite(gradient).all() for gradient in found.values())
    return (found, least) if finite and max(np.abs(gradient).max() for gradient in found.values()) > 0 else None


def shows(right, wrong, least):
    """Whether some gradient is off by at least VISIBLE, relative to its largest entry."""
    largest = max(np.abs(gradient).max() for gradient in right.values())
    return any(
        np.abs(wrong[name] - gradient).max()
        >= max(VISIBLE * np.abs(gradient).max(), VISIBLE * 1e-3 * largest, least[name])
        for name, gradient in right.items()
    )


def draw_case(seed: int, right: bool) -> Case:
    """The layer number `seed`, with a mistake unless `right`."""
    kind = KINDS[seed % len(KINDS)]
    for attempt in range(1000):
        pair = []
        for spoiled in (False, True):
            rng = np.random.default_rng([seed, right, attempt])
            shape = SHAPES[rng.integers(0, len(SHAPES))]
            layer, x = draw_layer(rng, kind, shape), draw_input(rng, shape)
            mistake = spoil_one(rng, layer) if spoiled else ""
            pair.append((layer, gradients(layer, x, [seed, 5]), mistake))
            if right or pair[-1][1] is None:
                break
        if any(found is None for _, found, _ in pair):
            continue
        if right or shows(pair[0][1][0], pair[1][1][0], pair[0][1][1]):
            layer, _, mistake = pair[-1]
            pieces = ", ".join(piece.name for piece in layer.all_pieces())
            return Case(layer, x, kind, mistake, f"{kind} {shape} of size {np.abs(x).max():.0e}: {pieces}")
    raise RuntimeError(f"no layer for seed {seed}")
