"""The problems, the hints and the known mistakes of 07_leaks."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task

SIZES = sizes("length vocab_size", (7, 11), (5, 6), (2, 3), (1, 2))
C = 8


def attention_model(rng, vocab_size, mask, after=False):
    """One layer of attention with random matrices: ids (B, length) -> logits (B, length, vocab_size).

    `mask` (length, length) is added to the scores. With `after` it is multiplied onto the weights instead.
    """
    length = len(mask)
    embedding, places = rng.standard_normal((vocab_size, C)), rng.standard_normal((length, C))
    to_q, to_k = 0.5 * rng.standard_normal((2, C, C)) / math.sqrt(C)
    to_logits = rng.standard_normal((C, vocab_size))

    def model(ids):
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.shape[1] != length:
            raise ValueError(f"this model reads ids of the shape (B, {length}), got {ids.shape}")
        if ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= vocab_size:
            raise ValueError(f"this model reads whole numbers from 0 to {vocab_size - 1}")
        x = embedding[ids] + places
        scores = (x @ to_q) @ (x @ to_k).swapaxes(-1, -2) + (0.0 if after else mask)
        weights = np.exp(scores)  # small scores
        weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
        return (weights * mask if after else weights) @ x @ to_logits + places @ to_logits

    return model


def shifted(model):
    """The model with a 0 put in front of its ids, and the last of them dropped."""

    def after_the_shift(ids):
        return model(np.concatenate([np.zeros_like(ids[:, :1]), ids[:, :-1]], axis=1))

    return after_the_shift


def bank(rng, length, vocab_size):
    """All models -> [(its name, whether it leaks, the model)]. With a single position, none can leak."""
    seen = np.tril(np.ones((length, length)))
    one_early, one_late, jump = seen.copy(), seen.copy(), seen + np.eye(length, k=2)
    one_early[1:2, 2:3] = one_late[-2:-1, -1] = 1.0

    def masked(name, allowed, otherwise=-np.inf):
        """A model that leaks if a later position is allowed, or is forbidden by a finite number only."""
        future = np.triu(np.ones_like(seen, dtype=bool), 1)
        leaks = bool((future if np.isfinite(otherwise) else future & (allowed > 0)).any())
        return name, leaks, attention_model(rng, vocab_size, np.where(allowed > 0, 0.0, otherwise))

    models = [
        masked("the honest model with a causal mask", seen),
        masked("the model whose positions see just themselves", np.eye(length)),
        masked("the model whose input is shifted right, so no position sees itself", seen),
        masked("the model that reads nothing", np.zeros_like(seen)),
        masked("the model that sees one token too many", np.tril(np.ones_like(seen), 1)),
        masked("the model without a mask", np.ones_like(seen)),
        masked("the model that sees two tokens ahead, but not the next one", jump),
        masked("the model in which only position 1 peeks at position 2", one_early),
        masked("the model in which only the second-to-last position peeks", one_late),
        (
            "the model whose mask is multiplied onto the weights",
            length > 1,
            attention_model(rng, vocab_size, seen, after=True),
        ),
        masked("the model with the finite mask -8, a leak of about 1e-3", seen, -8.0),
        masked("the model with the finite mask -25, a leak of about 1e-10", seen, -25.0),
    ]
    return [(name, leaks, shifted(model) if "shifted" in name else model) for name, leaks, model in models]


def make_bank(rng, given, length, vocab_size):
    """All models at once. The places: each model alone, the honest ones, the leaky ones, those that hardly leak."""
    names, leaky, models = zip(*bank(rng, length, vocab_size), strict=True)
    leaky = np.array(leaky)
    places = {f"at {name}": {"leaks": np.arange(len(names)) == i} for i, name in enumerate(names)}
    places["at the models in which a single position peeks"] = {"leaks": np.char.find(names, "only") >= 0}
    places["at the models whose leak is small"] = {"leaks": np.char.find(names, "finite") >= 0}
    places["at honest models"] = {"leaks": ~leaky}
    places["at leaky models"] = {"leaks": leaky}
    return Problem((list(models), length, vocab_size), (leaky,), places=places)


MISTAKES = (
    Mistake("only-last-token-changed", {"range(1, length)": "[length - 1]"}),
    Mistake("only-first-output-looked", {"[:, :t] != before[:, :t]": "[:, :1] != before[:, :1]"}),
    Mistake("each-output-compared-only", {"[:, :t] != before[:, :t]": "[:, t - 1] != before[:, t - 1]"}),
    Mistake(
        "outputs-after-change-compared",
        {"[:, :t] != before[:, :t]": "[:, t + 1 :] != before[:, t + 1 :]", "range(1, length)": "range(length)"},
    ),
    Mistake("output-changed-position-counts-too", {"[:, :t] != before[:, :t]": "[:, : t + 1] != before[:, : t + 1]"}),
    Mistake("all-outputs-compared", {"[:, :t] != before[:, :t]": " != before"}),
    Mistake(
        "tolerance-large-small-leak-missed",
        {"np.any(model(changed)[:, :t] != before[:, :t])": "not np.allclose(model(changed)[:, :t], before[:, :t])"},
    ),
    Mistake(
        "predictions-compared-not-logits",
        {"model(changed)[": "model(changed).argmax(axis=-1)[", "before[": "before.argmax(axis=-1)["},
    ),
    Mistake("says-true-honest-models-false", {"return True\n    return False": "return False\n    return True"}),
)

EXERCISE = Exercise(
    name="07_leaks",
    hints=(
        "You may change any input you like. Which outputs of an honest model can show that you did?",
        "A leak may be at one position only, it may reach far ahead, and it may be small. So try every change and "
        "look at every output.",
        "for each t from 1 on: replace token t of ids (1, length). Are the outputs (1, :t, V) the same in every bit?",
    ),
    tasks=(
        Task(
            function="leak_test",
            outputs=(Output("leaks", ("model",), "bool", sequence=True),),
            make=make_bank,
            sizes=SIZES,
            mistakes=MISTAKES,
            float32=False,  # its arrays are the learner's own ids
        ),
    ),
)
