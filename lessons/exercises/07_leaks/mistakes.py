"""The problems that 07_leaks is tried on, its hints, and the mistakes that are known."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes

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

    def behind(ids):
        return model(np.concatenate([np.zeros_like(ids[:, :1]), ids[:, :-1]], axis=1))

    return behind


def bank(rng, length, vocab_size):
    """All models -> [(who it is, whether it leaks, the model)]. With a single position, none can leak."""
    seen = np.tril(np.ones((length, length)))
    one_early, one_late, jump = seen.copy(), seen.copy(), seen + np.eye(length, k=2)
    one_early[1:2, 2:3] = one_late[-2:-1, -1] = 1.0

    def masked(name, allowed, otherwise=-np.inf):
        """A model, which leaks if a later position is allowed, or forbidden by a finite number only."""
        future = np.triu(np.ones_like(seen, dtype=bool), 1)
        leaks = bool((future if np.isfinite(otherwise) else future & (allowed > 0)).any())
        return name, leaks, attention_model(rng, vocab_size, np.where(allowed > 0, 0.0, otherwise))

    models = [
        masked("the model that sees itself and all before it", seen),
        masked("the model that sees itself alone", np.eye(length)),
        masked("the model whose input is shifted right, so that no position sees itself", seen),
        masked("the model that reads nothing", np.zeros_like(seen)),
        masked("the model that sees one too many", np.tril(np.ones_like(seen), 1)),
        masked("the model without a mask", np.ones_like(seen)),
        masked("the model that sees two ahead, but not the next", jump),
        masked("the model in which only position 1 peeks, at position 2", one_early),
        masked("the model in which only the last position but one peeks", one_late),
        (
            "the model whose mask is multiplied on after the softmax",
            length > 1,
            attention_model(rng, vocab_size, seen, after=True),
        ),
        masked("the model with the finite mask -8, a leak of about 1e-3", seen, -8.0),
        masked("the model with the finite mask -25, a leak of about 1e-10", seen, -25.0),
    ]
    return [(name, leaks, shifted(model) if "shifted" in name else model) for name, leaks, model in models]


def make_bank(rng, given, length, vocab_size):
    """All models at once; each one alone is a place, and the honest ones, the leaky ones and those that hardly leak."""
    names, leaky, models = zip(*bank(rng, length, vocab_size), strict=True)
    leaky = np.array(leaky)
    places = {f"at {name}": {"leaks": np.arange(len(names)) == i} for i, name in enumerate(names)}
    places["at the models in which a single position peeks"] = {"leaks": np.char.find(names, "only") >= 0}
    places["at the models whose leak is small"] = {"leaks": np.char.find(names, "finite") >= 0}
    places["at honest models"] = {"leaks": ~leaky}
    places["at leaky models"] = {"leaks": leaky}
    return Problem((list(models), length, vocab_size), (leaky,), places=places)


MISTAKES = (
    Mistake(
        "only the last token is changed",
        "A model lets position 1 see position 2 and nothing else of the future. Would your change reach it?",
        {"range(1, length)": "[length - 1]"},
    ),
    Mistake(
        "only the first output is looked at",
        "A model lets a single position peek, not the first. Which of the outputs you compare would tell you?",
        {"[:, :s] != before[:, :s]": "[:, :1] != before[:, :1]"},
    ),
    Mistake(
        "only the very next token is changed",
        "A model skips the next token and sees the one after it. Is the future only what comes next?",
        {"[:, :s] != before[:, :s]": "[:, s - 1] != before[:, s - 1]"},
    ),
    Mistake(
        "outputs after the change are compared",
        "You change position s. Which outputs are allowed to notice, those before s or those after it?",
        {"[:, :s] != before[:, :s]": "[:, s + 1 :] != before[:, s + 1 :]", "range(1, length)": "range(length)"},
    ),
    Mistake(
        "the output at the changed position counts, too",
        "May position s see its own input? So if it is changed, is a new output at s a leak?",
        {"[:, :s] != before[:, :s]": "[:, : s + 1] != before[:, : s + 1]"},
    ),
    Mistake(
        "all outputs are compared, also those that may change",
        "You change position s. For which outputs is s the past, or their own place, and are they to blame?",
        {"[:, :s] != before[:, :s]": " != before"},
    ),
    Mistake(
        "the tolerance is so large that a small leak is missed",
        "All that an honest model sees is the same in both runs. By how much may its output differ?",
        {"np.any(model(changed)[:, :s] != before[:, :s])": "not np.allclose(model(changed)[:, :s], before[:, :s])"},
    ),
    Mistake(
        "the predictions are compared, not the logits",
        "A leak moves every logit by a thousandth. Does the largest one become another?",
        {"model(changed)[": "model(changed).argmax(axis=-1)[", "before[": "before.argmax(axis=-1)["},
    ),
    Mistake(
        "it says True for the honest models, and False for the leaky ones",
        "What does the docstring want for a model that leaks?",
        {"return True\n    return False": "return False\n    return True"},
    ),
)

EXERCISE = Exercise(
    name="07_leaks",
    see='lesson 07, "How would you notice?"',
    hints=(
        "You may change any input you like. Which outputs of an honest model can tell that you did?",
        "A leak may be at one position, one or more steps ahead, and small: try every change, look at every output.",
        "for each s from 1 on: token s of ids (1, T) replaced -> are outputs (1, :s, V) the same, to the last bit?",
    ),
    tasks=(
        Task(
            function="leak_test",
            outputs=(Output("leaks", "M", "bool", sequence=True),),
            make=make_bank,
            sizes=SIZES,
            mistakes=MISTAKES,
            float32=False,  # its arrays are the learner's own ids
        ),
    ),
)
