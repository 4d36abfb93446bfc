"""A model without weights: what it says is a function of what it has read, so that a test can know all of it."""

import math

import numpy as np

from tests.helpers import device

PAD, BOS, EOS = 0, 1, 2


class ScriptedState:
    """A decoding state: `logits_of(source, said)` gives V numbers for a tuple of all tokens read.

    `sources` names what each row reads from; a row is its source and its tokens, so `select` must move both.
    """

    def __init__(self, logits_of, sources):
        self.logits_of = logits_of
        self.rows = [(source, ()) for source in sources]
        self.steps = 0
        self.sizes = []  # how many rows were read at each step

    def extend(self, ids):
        assert ids.ndim == 2
        assert isinstance(ids, np.ndarray)
        self.steps += 1
        self.sizes.append(len(ids))
        self.rows = [(source, (*said, *new)) for (source, said), new in zip(self.rows, ids.tolist(), strict=True)]
        return device(np.array([self.logits_of(*row) for row in self.rows], dtype=np.float64))

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows]


def random_script(seed, V, scale=2.0):
    """Other random logits for each source and each beginning."""
    return lambda source, said: scale * np.random.default_rng([seed, source, *said]).standard_normal(V)


def script(table, V):
    """A script from {what was said after bos: {token: probability}}; everywhere else the model wants to end."""

    def logits_of(source, said):
        p = table.get(said[1:], {EOS: 1.0})
        assert abs(sum(p.values()) - 1.0) < 1e-12
        return [math.log(p[token]) if token in p else -math.inf for token in range(V)]

    return logits_of


def naive_log_softmax(logits):
    """log p of a list of numbers, by its definition."""
    largest = max(logits)
    total = math.fsum(math.exp(x - largest) for x in logits)
    return [x - largest - math.log(total) for x in logits]


def naive_log_prob(logits_of, source, ids, bos=BOS):
    """The log probability of each token of `ids`, one after the other."""
    return [naive_log_softmax([*map(float, logits_of(source, (bos, *ids[:t])))])[ids[t]] for t in range(len(ids))]
