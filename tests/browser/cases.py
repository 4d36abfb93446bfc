"""Examples that the explorer and the library compute: sequences, masks, weights, edits by hand and planted mistakes."""

import contextlib
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from support.example_numbers import Trace, numbers

import numpy as np

from minitransformer.data.prompted import prompted
from minitransformer.data.tasks import Batch
from minitransformer.example import load_example
from minitransformer.example.model import LETTERS, Example
from minitransformer.example.names import by_lesson_names, named_weights
from minitransformer.exercises.known import known
from minitransformer.explorer.export import SHOWN
from minitransformer.functional import (
    cross_entropy,
    cross_entropy_backward,
    relu_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax_backward,
)
from minitransformer.functional.cross_entropy import _cross_entropy_backward
from minitransformer.functional.layer_norm import _layer_norm, _layer_norm_backward
from minitransformer.functional.softmax import _softmax_in_place
from minitransformer.models import GPT, Transformer, TransformerConfig
from minitransformer.vocabulary import BOS, EOS, PAD
from tests.explorer.reading import state_of
from tests.museum.exhibits import EXHIBITS, SOURCES
from tests.museum.planting import Exhibit

PATIENTS = {id: next(one for one in EXHIBITS if one.name == known(id).name) for id in SOURCES}
INPUTS = {*named_weights(load_example().model), "PE"}
INTO_E = 'for token, de in zip(ids, get[f"{at}.de"], strict=True):\n        get["dE"][token] += de'


def own(function, old, new, *also):
    """A mistake that only this file plants."""
    return Exhibit("", "", {function: (old, new), **{other: change for other, *change in also}})


MISTAKES = {  # of the page, and the same in the library
    "no-scale": own(
        scaled_dot_product_attention,
        "1.0 / math.sqrt(D) if scale is None else scale",
        "1.0",
        (Trace.attend, "(q @ k.swapaxes(-1, -2))[0] * q.shape[-1] ** -0.5", "(q @ k.swapaxes(-1, -2))[0]"),
    ),
    "no-scale-backward": own(
        scaled_dot_product_attention_backward,
        "dq *= scale\n    dk = product_of_heads(dscores.swapaxes(-1, -2), q)",
        "dk = dscores.swapaxes(-1, -2) @ (q / scale)",
    ),
    "mask-after-softmax": own(
        _softmax_in_place,
        "xp.copyto(p, -xp.inf, where=forbidden)",
        "p[...] = xp.exp(p - row_max(p))\n        p[...] = ~forbidden * p / row_sum(p)\n        return",
    ),
    "causal-mask-off": own(Trace.__init__, "causal_mask(len(target)) & target", "np.tile(target, (len(target), 1))"),
    "heads-reshaped": PATIENTS["heads-reshaped"],
    "variance-over-c-1": own(
        _layer_norm,
        "row_dot(x_hat, x_hat) / x.shape[-1]",
        "row_dot(x_hat, x_hat) / (x.shape[-1] - 1)",
        (_layer_norm_backward, "row_dot(dx, x_hat) / C", "row_dot(dx, x_hat) / (C - 1)"),
    ),
    "gamma-outside-sums": PATIENTS["gamma-outside-sums"],
    "softmax-entry-by-entry": own(softmax_backward, "ds = dp - row_dot(dp, p)", "ds = dp * (1.0 - p)"),
    "keys-reshaped": PATIENTS["keys-reshaped"],
    "relu-gated-by-gradient": own(relu_backward, "dy * (y > 0)", "dy * (dy > 0)"),
    "residual-forgotten": own(
        Trace.backward, 'self.norm_backward("decoder.norm1", dsum + dx)', 'self.norm_backward("decoder.norm1", dx)'
    ),
    "memory-through-values": own(Trace.attend_backward, 'back["q"], back["k"] + back["v"]', 'back["q"], back["v"]'),
    "token-twice": own(Trace.embed_backward, INTO_E, 'get["dE"][ids] += get[f"{at}.de"]'),
    "mean-and-sum": own(_cross_entropy_backward, "(share[rows] * dloss)", "((share[rows] > 0) * dloss)"),
}
OTHER_LINES = {  # mistakes that the page does not offer: options of Engine.build, and the same in the library
    "no sqrt(C) in the backward pass of the embedding": (
        {"replaced": {"embedding": {"de": "de[t,c] = dx[t,c]"}}},
        own(Trace.embed_backward, "dx * dx.shape[-1] ** 0.5", "dx"),
    ),
    "dE through the output alone": (
        {"replaced": {"matrix": {"dE": "dE[w,c] = sum[t](DZ[t,w] * Y[t,c])"}}},
        own(Trace.embed_backward, INTO_E, "pass"),
    ),
    "gamma outside the sums, in one place": (
        {
            "replaced": {
                "norm": {
                    "dx": "dx[t,c] = gamma[c] * (dy[t,c] - sum[g](dy[t,g]) / C"
                    " - x_hat[t,c] * sum[g](dy[t,g] * x_hat[t,g]) / C) / sigma[t]"
                }
            },
            "only": ["decoder.norm2"],
        },
        own(
            Trace.norm_backward,
            "return get",
            """if at == "decoder.norm2":
        x_hat, gamma = get[f"{at}.x_hat"], get[f"{at}.gamma"]
        mean = lambda x: x.mean(axis=-1, keepdims=True)
        get[f"{at}.dx"] = gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / get[f"{at}.sigma"]
    return get""",
        ),
    ),
}


class Case(NamedTuple):
    """An example, and what is done to it on both sides."""

    group: str
    name: str
    example: Example
    smoothing: float = 0.0
    allowed: Mapping[str, np.ndarray] = {}  # masks of one's own
    options: Mapping[str, Any] = {}  # of Engine.build, and "mistake": its id
    edits: tuple[tuple[str, int, float], ...] = ()  # (array, place of the number in it, what is added to it)
    weights: Mapping[str, np.ndarray] | None = None  # if they are not those that the page has
    planted: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext  # the same in the library
    whole: bool = False  # whether the library is asked for results and gradients of weights alone, as in any shape

    def numbers(self):
        """What the library computes."""
        with self.planted():
            if self.whole:
                return results_and_gradients(self.example, self.smoothing)
            return numbers(self.example, self.smoothing, self.allowed)


def results_and_gradients(example, smoothing=0.0):
    """What a Transformer or GPT of any shape gives, and the gradients of its weights, by their names on the page."""
    model, (inputs, targets) = example.model, sequences(example)
    z, cache = model.forward(*inputs)
    loss, cache_loss = cross_entropy(z, targets, smoothing)
    model.zero_grad()
    dz = cross_entropy_backward(1.0, cache_loss)
    found = {"output.z": z, "output.p": cache_loss.p, "output.L": loss, "output.dz": dz.copy()}
    model.backward(dz, cache)
    lengths = {"target": inputs[-1].shape[1], "source": inputs[0].shape[1]}
    grads = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, grad in by_lesson_names(grads, model.config.num_layers).items():
        place, dot, symbol = name.rpartition(".")
        found[f"{place}{dot}d{symbol}"] = grad[: lengths[place]] if symbol == "P" else grad
    return {name: np.asarray(array) for name, array in found.items()}


def sequences(example):
    """The inputs and targets, arranged as in the recipes' batches; padding at the end stays."""
    if not isinstance(example.model, GPT):
        return (example.source, example.target_in), example.target_out
    batch = prompted(Batch(*example[2:]))
    padding = np.full((1, (example.source == PAD).sum() + (example.target_in == PAD).sum()), PAD)
    ids, targets = (np.concatenate([rows, padding], axis=1) for rows in batch)
    return (ids,), targets


def example_of(source, target, pad_source=0, pad_target=0, model=None):
    """The example with these words, and so many tokens of padding after them."""
    usual = load_example()
    source, target = ([usual.tokens.index(letter) for letter in word] for word in (source, target))
    after = [PAD] * pad_target
    rows = ([*source, *[PAD] * pad_source], [BOS, *target, *after], [*target, EOS, *after])
    return Example(model or usual.model, usual.tokens, *(np.array([ids]) for ids in rows))


def untrained():
    """The model of the example with the weights that the page draws."""
    trained, random = load_example().model, uniform()
    model = Transformer(trained.config, seed=None, dtype=np.float64)
    drawn = {name: drawn_like(name, array, random) for name, array in named_weights(trained).items()}
    model.load_state_dict(state_of(drawn, layers=1))
    return model


def uniform():
    """Numbers between -1 and 1: multiples of the powers of 48271, modulo a prime."""
    for n in itertools.count(1):
        yield 2 * (123456 * pow(48271, n, 2**31 - 1) % (2**31 - 1)) / (2**31 - 1) - 1


def drawn_like(name, array, random):
    """Gains of 1, biases of 0, a normal E and uniform matrices, number by number."""
    symbol = name.rpartition(".")[2]
    if symbol[0] not in "EW":
        return np.full(array.shape, float(symbol == "gamma"))
    if symbol[0] == "W":
        return np.array([next(random) for _ in array.flat]).reshape(array.shape) * np.sqrt(6 / sum(array.shape))
    size, angle = np.array([[next(random), next(random)] for _ in array.flat]).T
    normal = np.sqrt(-2 * np.log((1 + size) / 2)) * np.cos(np.pi * angle)
    return normal.reshape(array.shape) / np.sqrt(array.shape[1])


def scrambled(seed, model=None):
    """The model with random weights, also those that are 0 or 1 before training."""
    rng, model = np.random.default_rng(seed), model or untrained()
    for parameter in model.parameters():
        parameter.data = rng.normal(0.4 * (parameter.data == 1), 0.7, parameter.data.shape)
    return model


def all_cases():
    """All cases, group by group."""
    makers = (words, answers, paddings, smoothings, masks, weights, edits, mistakes, shapes)
    return [case for make in makers for case in make()]


def words():
    """All words of one and two letters, and some of three and four, reversed."""
    rng = np.random.default_rng(0)
    short = ["".join(letters) for length in (1, 2) for letters in itertools.product(LETTERS, repeat=length)]
    long = ["".join(rng.choice(list(LETTERS), length)) for length in (3, 4) for _ in range(8)]
    for word in [*short, *long, "stop", "toot", "ssss"]:
        yield Case("words", word, load_example(word))


def answers():
    """Targets that are not the reversal, of other lengths."""
    for source, target in (("stop", "stop"), ("stop", "t"), ("o", "pots"), ("toot", "stoppots"), ("stopstop", "o")):
        yield Case("own answers", f"{source} -> {target}", example_of(source, target))


def paddings():
    """Padding after the source, the target and both."""
    for pad_source, pad_target in ((1, 0), (0, 1), (3, 2)):
        for source, target in (("stop", "pots"), ("to", "toot"), ("o", "o")):
            example = example_of(source, target, pad_source, pad_target)
            yield Case("padding", f"{source} + {pad_source}, {target} + {pad_target}", example)


def smoothings():
    for smoothing in (0.1, 0.9):
        for pad in (0, 2):
            yield Case("label smoothing", f"{smoothing}, {pad}", example_of("toot", "pots", pad, pad), smoothing)


def masks():
    """Random masks of one's own, and one with a row in which nothing is allowed."""
    rng = np.random.default_rng(1)
    for number in range(4):
        shapes = {"encoder.self": (4, 4), "decoder.self": (5, 5), "cross": (5, 4)}
        allowed = {place: rng.random(shape) < 0.6 for place, shape in shapes.items()}
        yield Case("own masks", f"random {number}", load_example("toot"), 0.1, allowed)
    empty = np.ones((5, 4), dtype=bool)
    empty[2] = False
    yield Case("own masks", "a row without a key", load_example(), allowed={"cross": empty})


def weights():
    for name, model in (("untrained", untrained()), ("random 2", scrambled(2)), ("random 3", scrambled(3))):
        for source, target in (("stop", "pots"), ("toot", "ssss")):
            example = example_of(source, target, 1, 2, model)
            yield Case("other weights", f"{name}, {source}", example, 0.1, weights=named_weights(example.model))


def shapes():
    """Models of each shape with random weights, also those that are 0 or 1 before training."""
    for kind, norm, positions in itertools.product((Transformer, GPT), ("post", "pre"), SHOWN["positions"]):
        for layers in (1, 2):
            yield shape(kind, norm, positions, layers)


def shape(kind, norm, positions, layers):
    config = TransformerConfig(
        9, d_model=8, num_heads=2, d_ff=5, num_layers=layers, dropout=0.0, norm=norm, positions=positions, max_len=20
    )
    # with other seeds some attention saturates, and gradients of 1e-9 have fewer right digits
    model = scrambled(5, kind(config, seed=0, dtype=np.float64))
    rows = ([3, 8, 8, EOS, PAD], [BOS, 5, 8, 6, PAD], [5, 8, 6, EOS, PAD])
    example = Example(model, (), *(np.array([ids]) for ids in rows))
    group = f"{kind.__name__}, {norm}-norm, {positions} positions"
    return Case(
        group, "one layer" if layers == 1 else "two layers", example, 0.1, weights=named_weights(model), whole=True
    )


def edits():
    """A number is added to one entry of an array that is computed, or of a matrix."""
    for name, flat, amount, exhibit in (
        edit("cross.s", (2, 5, 4), 7, 1.5, Trace.attend, SCORES, EDITED_SCORES),
        edit("encoder.ffn.a", (4, 8), 5, -0.8, Trace.feed_forward, RELU, 'get[f"{at}.a"] += SPOT\n    ' + RELU),
        edit("decoder.norm1.y", (5, 6), 13, 0.7, Trace.norm, "norm_eps)", "norm_eps)\n    y = y + SPOT"),
        edit("target.e", (5, 6), 8, 0.4, Trace.embed, 'get["E"][ids]', 'get["E"][ids] + SPOT'),
        edit("output.z", (5, 7), 3, -2.0, Trace.forward, 'get["E"].T', 'get["E"].T + SPOT'),
        edit("E", (7, 6), 20, 0.5, by_lesson_names, "return found", 'found["E"] = found["E"] + SPOT\n    return found'),
    ):
        yield Case("edits", name, load_example(), edits=((name, flat, amount),), planted=exhibit.planted)


SCORES = """o, caches[at] = scaled_dot_product_attention(q, k, v, self.allowed[at])
    get[f"{at}.s"] = (q @ k.swapaxes(-1, -2))[0] * q.shape[-1] ** -0.5"""
EDITED_SCORES = SCORES.replace("[at])", "[at], bias=SPOT + np.zeros((1, 1, 1)))") + " + SPOT"
RELU = 'get[f"{at}.r"], caches[f"{at}.r"] = relu(get[f"{at}.a"])'


def edit(name, shape, flat, amount, function, old, new):
    """The edit, and the same in the library: SPOT stands for zeros with one other number, in this place alone."""
    place = name.rpartition(".")[0]
    spot = f"np.bincount([{flat}], [{amount}], {math.prod(shape)}).reshape{shape}"
    condition = f" if at == '{place}' else 0.0" if "at" in function.__code__.co_varnames else ""
    return name, flat, amount, own(function, old, new.replace("SPOT", f"({spot}{condition})"))


def mistakes():
    """Each mistake of the page and some others, in a word that repeats a letter and one that does not."""
    planted = {f"{name}": ({"mistake": name}, exhibit) for name, exhibit in MISTAKES.items()}
    for name, (options, exhibit) in (planted | OTHER_LINES).items():
        for source, target, pad_source, pad_target in (("stop", "pots", 0, 0), ("toot", "ppp", 1, 2)):
            example = example_of(source, target, pad_source, pad_target)
            yield Case("mistakes", f"{name}, {source}", example, 0.1, {}, options, planted=exhibit.planted)
