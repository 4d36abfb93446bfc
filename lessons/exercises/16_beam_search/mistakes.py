"""The problems, the hints and the known mistakes of 16_beam_search."""

import dataclasses

import numpy as np
from exercise_problems import sizes

from minitransformer.decoding import beam_search, length_penalty
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.vocabulary import BOS, EOS

# V, beam and max_new_tokens: first of problems on which one known mistake shows, then of any problems
RICH = ((5, 3, 6), (6, 2, 4), (4, 2, 6), (8, 3, 4), (5, 2, 5), (6, 3, 4), (4, 3, 5), (5, 4, 4), (7, 2, 4), (3, 2, 6))
RICH += ((6, 2, 5), (7, 3, 3))
OTHERS = ((3, 1, 5), (3, 3, 3), (4, 6, 3), (6, 5, 1), (5, 1, 1), (7, 2, 4)) * 3
SIZES = sizes("V beam max_new_tokens", *RICH, *OTHERS)
APART = 1e-3  # a mistake changes the score by more, so that it differs from rounding, even in float32
ROWS = 250  # at most, in each table of a language
NOTHING = -1  # after an answer's last token


class Rows:
    """A language model as the library's search wants it: it remembers what each row has written."""

    def __init__(self, log_p):
        self.log_p, self.said = log_p, [()]

    def extend(self, ids):
        """The next token of each row, bos at first -> logits (rows, V)."""
        self.said = [(*said, *row) for said, row in zip(self.said, ids.tolist(), strict=True)]
        return np.stack([self.log_p(said[1:]) for said in self.said])

    def select(self, rows):
        """Go on with these rows."""
        self.said = [self.said[row] for row in rows]


def random_model(rng, V, length, flat, sharp):
    """A language: the log probabilities of what comes after each beginning, up to `length` tokens.

    After half of the beginnings all tokens are about equally likely, after the others a single token is. `flat` and
    `sharp` are the standard deviations of the logits. After eos the model is very sure of the next token, like models
    that were never taught what comes there.
    """
    growth = rng.choice([0.0, 0.6]) if sharp else 0.0  # of the logit of eos, for each token
    tables = []  # for each length, a row for each beginning
    for said in range(length):
        rows = min(V**said, ROWS)
        logits = np.where(rng.random((rows, 1)) < 0.5, flat, sharp) * rng.standard_normal((rows, V))
        logits[:, EOS] += growth * (said - 2)
        tables.append(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
    sure = -9.0 * (np.arange(V) > 0)

    def log_p(ids):
        if EOS in ids:
            return sure - np.log(np.exp(sure).sum())
        table = tables[min(len(ids), length - 1)]
        return table[sum(int(token) * V**t for t, token in enumerate(ids)) % len(table)].copy()

    return log_p


def make_search(rng, given, V, beam, max_new_tokens):
    """A language of V tokens. The first ones are drawn until the known mistake that belongs to them shows."""
    rich = (V, beam, max_new_tokens) in RICH
    while True:
        tied = beam >= V and rng.random() < 0.5  # all tokens are equally likely; eos is in the beam, in any order
        log_p = random_model(rng, V, max_new_tokens, *((0.0, 0.0) if tied else (0.5, 8.0)))
        args = log_p, max_new_tokens, beam, float(rng.choice([0.6, 1.0, 2.0] if rich else [0.0, 0.6, 1.0]))
        best = beam_search(Rows(log_p), 1, max_new_tokens, BOS, beam, args[-1])[0][0]
        mistake = MISTAKES[RICH.index((V, beam, max_new_tokens))] if rich else None
        if not rich or abs(EXERCISE.mistaken(EXERCISE.tasks[0], mistake)(*args)[0] - best.score) > APART:
            problem = Problem(args, ())
            return dataclasses.replace(problem, expected=padded_ids((best.score, best.ids), problem))


def padded_ids(outputs, problem):
    """The ids, padded with -1 to the most tokens allowed, so that answers of all lengths can be compared."""
    score, ids = outputs
    ids, missing = np.asarray(ids), problem.args[1] - np.size(ids)
    if ids.ndim == 1 and missing > 0:
        ids = np.concatenate([ids, np.full(missing, NOTHING)])
    return score, ids


def is_an_answer(outputs, problem):
    """Whether no token comes after eos, and all are tokens."""
    ids = outputs[1].reshape(-1).tolist()
    return EOS not in ids[:-1] and set(ids) <= set(range(len(problem.args[0](()))))


def may_have_all_tokens(outputs, problem):
    """Whether an answer without eos is given, if that is the best one."""
    best, ids = problem.expected[1], outputs[1]
    return EOS in best or EOS not in ids


def ends_if_it_should(outputs, problem):
    """Whether an answer with eos is given, if that is the best one."""
    best, ids = problem.expected[1], outputs[1]
    return EOS not in best or EOS in ids


def counts_what_it_says(outputs, problem):
    """Whether the score is that of the ids, even if they are not the best."""
    score, ids = outputs
    if score.ndim or not ids.size or not is_an_answer(outputs, problem):
        return True  # that is another complaint
    log_p, _, _, alpha = problem.args
    total = sum(log_p(ids[:t])[int(ids[t])] for t in range(len(ids)))
    return abs(score - total / length_penalty(len(ids), alpha)) < 1e-9


MISTAKES = (
    Mistake(
        "one-beginning-lives-greedy",
        {
            "return max(finished + [(total / penalty, ids) for total, ids in alive])": (
                "total, ids = greedy(log_p, max_new_tokens)\n    return total / ((5 + len(ids)) / 6) ** alpha, ids"
            )
        },
    ),
    Mistake(
        "first-answer-wins",
        {"        alive = [": "        if finished:\n            return max(finished)\n        alive = ["},
    ),
    Mistake(
        "every-extension-ends-eos-finished",
        {"for total, ids in extended[:beam] if ids[-1] == EOS": "for total, ids in extended if ids[-1] == EOS"},
    ),
    Mistake(
        "answer-ended-takes-place-living",
        {
            "alive = [(total, ids) for total, ids in extended if ids[-1] != EOS][:beam]": (
                "alive = [(total, ids) for total, ids in extended[:beam] if ids[-1] != EOS]"
            )
        },
    ),
    Mistake("still-lives-end-does", {"finished + [(": "finished or [("}),
    Mistake(
        "answers-go-after-eos",
        {
            "        finished += [(total / penalty, ids) for total, ids in extended[:beam] if ids[-1] == EOS]\n": "",
            " if ids[-1] != EOS": "",
        },
    ),
    Mistake("length-penalty-missing", {"((5 + length) / 6) ** alpha": "1.0"}),
    Mistake("ln-p-multiplied-penalty", {"** alpha": "** -alpha"}),
    Mistake("penalty-one-token-fewer", {"5 + length": "4 + length"}),
    Mistake("penalty-t-alpha", {"((5 + length) / 6) ** alpha": "length**alpha"}),
    Mistake("probabilities-added-not-logarithms", {"total + x": "total + np.exp(x)"}),
    Mistake("beginning-forgets-own-ln-p", {"total + x": "x"}),
)

EXERCISE = Exercise(
    name="16_beam_search",
    hints=(
        "What must you know of a beginning, besides its ids, to compare it with another one?",
        "Three lists: what lives, all its extensions, and what is finished. Which of them may contain eos? Which "
        "number sorts the extensions, and which other number chooses the best of the finished?",
        "extended: (number of living) · V pairs (ln p, ids);  finished: pairs (ln p / a power, ids);  alive: "
        "`beam` pairs (ln p, ids) without eos",
    ),
    tasks=(
        Task(
            function="beam_search",
            outputs=(Output("score", ""), Output("ids", "t", "int", sequence=True)),
            make=make_search,
            sizes=SIZES,
            rich=len(RICH),
            observe=padded_ids,
            invariants=(
                Invariant("ids are tokens, with eos at their end or nowhere", is_an_answer),
                Invariant("the score is that of the ids", counts_what_it_says),
                Invariant("the best answer here has max_new_tokens tokens, and no eos", may_have_all_tokens),
                Invariant("the best answer here ends in eos", ends_if_it_should),
            ),
            mistakes=MISTAKES,
        ),
    ),
)
