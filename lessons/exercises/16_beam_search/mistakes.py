"""The problems that 16_beam_search is tried on, its hints, and the mistakes that are known."""

import functools

import numpy as np

from minitransformer.decoding import beam_search, length_penalty
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.vocabulary import BOS, EOS

V, BEAM, ROOM = 5, 3, 5
APART = 1e-3  # scores of different answers differ by more, in the problems that are given
NOBODY = -1  # after an answer's last token
TRACE = 1e-5  # too little to be seen in four decimals


class Rows:
    """A language model as the library's search wants it: it remembers what each row has said."""

    def __init__(self, log_p, beam):
        self.log_p, self.said = log_p, [()] * beam

    def extend(self, ids):
        """The next token of each row, bos at first -> logits (beam, V)."""
        self.said = [(*said, *row) for said, row in zip(self.said, ids.tolist(), strict=True)]
        return np.stack([self.log_p(said[1:]) for said in self.said])

    def select(self, rows):
        """Go on with these rows."""
        self.said = [self.said[row] for row in rows]


def random_model(rng, growth):
    """A language: the log probabilities of what comes after each beginning.

    With each token the logit of eos grows by `growth`. What it says after eos it says with much conviction, as models
    do that were never taught what comes there.
    """
    tables = []  # for each length, a row for each beginning
    for length in range(ROOM):
        logits = 3.0 * rng.standard_normal((V**length, V))
        logits[:, EOS] += growth * (length - 2)
        tables.append(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
    sure = -9.0 * (np.arange(V) > 0)

    def log_p(ids):
        if EOS in ids:
            return sure - np.log(np.exp(sure).sum())
        table = tables[min(len(ids), ROOM - 1)]
        return table[sum(int(token) * V**t for t, token in enumerate(ids)) % len(table)].copy()

    return log_p


def make_search(rng, given):
    """A language in which every mistake shows."""
    return search_problem(int(rng.integers(1 << 30)))


@functools.lru_cache(64)
def search_problem(seed):
    """Languages are drawn until there is one. In half of the problems the best answer has the most tokens allowed."""
    rng = np.random.default_rng(seed)
    cut = rng.random() < 0.5
    while True:
        log_p, alpha = random_model(rng, 0.0 if cut else 0.6), float(rng.choice([0.6, 0.8, 1.0]))
        problem = Problem((log_p, ROOM, BEAM, alpha), ())
        answers = beam_search(Rows(log_p, BEAM), 1, ROOM, BOS, BEAM, alpha)[0]
        best = answers[0]
        if len(best.ids) < 3 or cut == (best.ids[-1] == EOS):
            continue
        scores = [best.score, *[answer.score for answer in answers if answer.ids[-1] == EOS][:1]]
        for mistake in MISTAKES:
            score, _ = EXERCISE.mistaken(EXERCISE.tasks[0], mistake)(*problem.args)
            if np.abs(np.subtract(scores, score)).min() < APART:
                break
            scores.append(score)
        else:
            return Problem(problem.args, padded_ids((best.score, best.ids), problem))


def padded_ids(outputs, problem):
    """The ids, padded with -1 to the most tokens allowed, so that answers of all lengths can be compared.

    Wrong ids get a trace of their score: with so few answers about, the same ids alone do not tell the same mistake.
    """
    score, ids = outputs
    ids = np.asarray(ids)
    if ids.ndim == 1 and len(ids) < ROOM:
        ids = np.concatenate([ids, np.full(ROOM - len(ids), NOBODY)])
    if problem.expected and np.ndim(score) == 0 and not np.array_equal(ids, problem.expected[1]):
        ids = ids + TRACE * abs(float(score))
    return score, ids


def is_an_answer(outputs, problem):
    """Whether no token comes after eos, and all are tokens."""
    ids = outputs[1].reshape(-1).tolist()
    return EOS not in ids[:-1] and set(ids) <= set(range(V))


def may_have_all_tokens(outputs, problem):
    """Whether an answer without eos is given, if that is the best one."""
    best, ids = problem.expected[1], outputs[1]
    return EOS in best or EOS not in ids


def ends_if_it_should(outputs, problem):
    """Whether an answer with eos is given, if that is the best one."""
    best, ids = problem.expected[1], outputs[1]
    return EOS not in best or EOS in ids


def counts_what_it_says(outputs, problem):
    """Whether the score is that of the ids, be they the best or not."""
    score, ids = outputs
    if score.ndim or not ids.size or not is_an_answer(outputs, problem):
        return True  # that is another complaint
    log_p, _, _, alpha = problem.args
    total = sum(log_p(ids[:t])[int(ids[t])] for t in range(len(ids)))
    return abs(score - total / length_penalty(len(ids), alpha)) < 1e-9


MISTAKES = (  # first those that are right most often
    Mistake(
        "one beginning lives on: it is greedy",
        "How many of the extensions should live on, and what does the second best know that the best does not?",
        {
            "return max(finished + [(total / penalty, ids) for total, ids in alive])": (
                "total, ids = greedy(log_p, max_new_tokens)\n    return total / ((5 + len(ids)) / 6) ** alpha, ids"
            )
        },
    ),
    Mistake(
        "the search stops at the first answer that ends",
        "May a longer answer, still on its way, have a better score?",
        {"        alive = [": "        if finished:\n            return max(finished)\n        alive = ["},
    ),
    Mistake(
        "answers go on after their eos",
        "Which beginnings may be extended? What is a token after the end token?",
        {
            "        finished += [(total / penalty, ids) for total, ids in extended[:beam] if ids[-1] == EOS]\n": "",
            " if ids[-1] != EOS": "",
        },
    ),
    Mistake(
        "the length penalty is missing",
        "Why do short answers win, and what did Wu et al. do?",
        {"((5 + length) / 6) ** alpha": "1.0"},
    ),
    Mistake(
        "log P is multiplied by the penalty",
        "log P is negative. Does multiplying by more than 1 make it larger or smaller?",
        {"** alpha": "** -alpha"},
    ),
    Mistake(
        "the penalty is that of one token less",
        "eos has cost a log p of its own. Is it a token of the answer? And what is the penalty of a single token?",
        {"5 + length": "4 + length"},
    ),
    Mistake(
        "the penalty is l^alpha",
        "Other libraries have that one. What is the paper's penalty of one token, and of seven?",
        {"((5 + length) / 6) ** alpha": "length**alpha"},
    ),
    Mistake(
        "probabilities are added, not their logarithms",
        "What is done with the probabilities of the tokens to get that of the sentence? And with their logarithms?",
        {"total + x": "total + np.exp(x)"},
    ),
    Mistake(
        "a beginning forgets its own log P",
        "What is log P of an extension made of, besides the log p of its last token?",
        {"total + x": "x"},
    ),
)

EXERCISE = Exercise(
    name="16_beam_search",
    see="lesson 16, parts 1 and 2",
    hints=(
        "What must be known of a beginning, besides its ids, to compare it with another one?",
        "Three lists: what lives, all its extensions, what is finished. Which of them does eos belong to? Which number "
        "sorts the extensions, and which other one chooses the best of the finished?",
        "extended: (number of living) · V pairs (log P, ids);  finished: pairs (log P over a power of l, ids);  alive: "
        "`beam` pairs (log P, ids) without eos",
    ),
    tasks=(
        Task(
            function="beam_search",
            outputs=(Output("score", ""), Output("ids", "t")),
            make=make_search,
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
