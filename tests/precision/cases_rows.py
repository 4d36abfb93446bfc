"""Functions of rows: softmax, cross-entropy and the two normalisations."""

from functools import partial

import numpy as np

from tests.precision import definitions
from tests.precision.case import Case
from tests.precision.running import pair

REFS = ("ref_chosen", "ref_rejected")


def scores(make, name="scores"):
    return lambda dtype: {name: make(np.random.default_rng(7))}


def softmax(words, make, units=("entry", "terms"), allowed=None, long=False):
    def define(scores):
        return definitions.softmax(scores, allowed)

    return Case("softmax", words, scores(make), pair("softmax", allowed=allowed), define, units, long)


def cross_entropy(words, make, targets, smoothing=0.0, units=("entry", "terms"), long=False):
    targets = np.array(targets)

    def define(logits):
        return definitions.cross_entropy(logits, targets, smoothing)

    run = pair("cross_entropy", targets=targets, smoothing=smoothing)
    return Case(
        "cross_entropy", words, lambda dtype: {"logits": make(np.random.default_rng(8))}, run, define, units, long
    )


def token_log_probs(words, make, units=("entry", "terms")):
    given = {"targets": np.array([1, 4, 6]), "counted": np.array([True, True, False])}

    def define(z):
        return definitions.token_log_probs(z, **given)

    inputs = scores(make, "z")
    return Case("token_log_probs", words, inputs, pair("token_log_probs", **given), define, units)


def dpo(words, lead):
    """Two pairs, the first in the right order and the second in the wrong one, by about `lead`."""

    def inputs(dtype):
        names = ("chosen", "rejected", "ref_chosen", "ref_rejected")
        rng = np.random.default_rng(10)
        arrays = {name: -rng.exponential(1.0, (2, 4)) for name in names}
        arrays["chosen"][:, 0] += [lead, -lead]
        return arrays

    define = partial(definitions.dpo, beta=0.5)
    return Case("dpo", words, inputs, pair("dpo", beta=0.5), define, ("entry", "terms"), constants=REFS)


def grpo(words, distance):
    """Three answers of four tokens; log rho is about `distance`."""
    counted = np.arange(4) < [[4], [2], [3]]

    def inputs(dtype):
        rng = np.random.default_rng(11)
        old = -rng.exponential(1.0, (3, 4))
        log_p, ref_log_p = (old + distance * rng.standard_normal((3, 4)) for _ in range(2))
        return {"log_p": log_p, "old_log_p": old, "advantages": np.array([1.1, 0.2, -1.3]), "ref_log_p": ref_log_p}

    options = {"counted": counted, "clip": 0.2, "beta": 0.1}
    constants, units = ("old_log_p", "advantages", "ref_log_p"), ("terms", "terms")
    return Case(
        "grpo", words, inputs, pair("grpo", **options), partial(definitions.grpo, **options), units, constants=constants
    )


def norm(words, make, units=("array", "terms"), eps=1e-5, long=False):
    """A case of LayerNorm, and the same of RMSNorm."""

    def layer_norm(dtype):
        rng = np.random.default_rng(9)
        x = make(rng)
        C = x.shape[-1]
        return {"x": x, "gamma": 1 + 0.3 * rng.standard_normal(C), "beta": 0.3 * rng.standard_normal(C)}

    def rms_norm(dtype):
        return {name: array for name, array in layer_norm(dtype).items() if name != "beta"}

    for name, inputs in (("layer_norm", layer_norm), ("rms_norm", rms_norm)):
        define = partial(getattr(definitions, name), eps=eps)
        given = {} if eps == 1e-5 else {"eps": eps}  # the default
        yield Case(name, words, inputs, pair(name, **given), define, units, long)


def sure(rng):
    """Three tokens whose right word leads by 12, 20 and 30."""
    logits = rng.standard_normal((3, 7))
    logits[np.arange(3), [1, 4, 6]] = np.add(logits.max(axis=1), [12, 20, 30])
    return logits


def lead(rng):
    """Rows in which one score leads by 12 to 40."""
    s = rng.standard_normal((4, 6))
    s[:, 2] = np.add(s.max(axis=1), [12, 20, 30, 40])
    return s


SHAPE, ONE_KEY = (3, 7), np.arange(7) == np.array([[2], [0], [6]])
ROWS = [
    softmax("order one", lambda rng: rng.standard_normal(SHAPE)),
    softmax("scores of 1e4", lambda rng: 1e4 + 3 * rng.standard_normal(SHAPE)),
    softmax("nearly equal scores", lambda rng: 1 + 1e-6 * rng.standard_normal(SHAPE)),
    softmax("scores from 0 to 40", lambda rng: rng.uniform(0, 40, SHAPE)),
    softmax("one weight nearly 1", lead),
    softmax("one weight nearly 1, each gradient by itself", lead, ("entry", "entry")),
    softmax(
        "scores from -200 to 0, weights below 1e-19 made 0", lambda rng: rng.uniform(-200, 0, SHAPE), ("array", "array")
    ),
    softmax("one weight nearly 1, absolute errors", lead, ("one", "one")),
    softmax("one allowed key", lambda rng: 9 * rng.standard_normal(SHAPE), allowed=ONE_KEY),
    softmax("2,000 scores", lambda rng: 3 * rng.standard_normal((2, 2000)), long=True),
    softmax("37,000 scores", lambda rng: 3 * rng.standard_normal((1, 37000)), long=True),
    cross_entropy("order one", lambda rng: rng.standard_normal(SHAPE), [1, 0, 5]),
    cross_entropy("smoothing 0.1", lambda rng: 3 * rng.standard_normal(SHAPE), [1, 4, 5], 0.1),
    cross_entropy("logits far apart", lambda rng: 25 * rng.standard_normal(SHAPE), [1, 4, 5]),
    cross_entropy("logits far apart, smoothing 0.1", lambda rng: 25 * rng.standard_normal(SHAPE), [1, 4, 5], 0.1),
    cross_entropy("logits of 1e4", lambda rng: 1e4 + 3 * rng.standard_normal(SHAPE), [1, 4, 5]),
    cross_entropy("a sure right word", sure, [1, 4, 6]),
    cross_entropy("a sure right word, each gradient by itself", sure, [1, 4, 6], units=("entry", "entry")),
    cross_entropy("a sure right word, absolute errors", sure, [1, 4, 6], units=("one", "one")),
    cross_entropy("a sure wrong word", sure, [2, 3, 1]),
    cross_entropy("37,000 words", lambda rng: 3 * rng.standard_normal((1, 37000)), [5], long=True),
    cross_entropy("2,000 words, smoothing 0.1", lambda rng: rng.standard_normal((1, 2000)), [5], 0.1, long=True),
    token_log_probs("order one", lambda rng: rng.standard_normal(SHAPE)),
    token_log_probs("logits of 1e4", lambda rng: 1e4 + 3 * rng.standard_normal(SHAPE)),
    token_log_probs("a sure token", sure),
    dpo("order one", 0.5),
    dpo("a sure preference", 80.0),
    grpo("order one", 0.3),
    grpo("nearly on policy", 1e-4),
    *norm("order one", lambda rng: rng.standard_normal((3, 8))),
    *norm("mean 9", lambda rng: 9 + rng.standard_normal((3, 8))),
    *norm("mean 1e4", lambda rng: 1e4 + rng.standard_normal((3, 8))),
    *norm("mean 1e4, deviation 0.01", lambda rng: 1e4 + 0.01 * rng.standard_normal((3, 8))),
    *norm("nearly equal features", lambda rng: 0.3 + 1e-6 * rng.standard_normal((3, 8))),
    *norm("features of 1e-30", lambda rng: 1e-30 * rng.standard_normal((3, 8))),
    *norm("features of 1e-30, eps 0", lambda rng: 1e-30 * rng.standard_normal((3, 8)), eps=0.0),
    *norm("features of 1e-18, eps 1e-36", lambda rng: 1e-18 * rng.standard_normal((3, 8)), eps=1e-36),
    *norm("features of 1e25", lambda rng: 1e25 * rng.standard_normal((3, 8))),
    *norm("features from 1e-10 to 1e4", lambda rng: 10.0 ** rng.uniform(-10, 4, (3, 8)) * rng.choice([-1, 1], (3, 8))),
    *norm("2,048 features", lambda rng: 3 + rng.standard_normal((1, 2048)), long=True),
    *norm("1,000 tokens", lambda rng: 3 + rng.standard_normal((1000, 3)), long=True),
]
