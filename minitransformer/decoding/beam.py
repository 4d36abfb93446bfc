"""Beam search with the paper's length penalty (section 6.1; Wu et al. 2016, equation 14)."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding.sampling import log_softmax
from minitransformer.vocabulary import EOS, PAD


class Hypothesis(NamedTuple):
    """One answer."""

    ids: tuple  # without bos, ending in eos if there was room
    log_prob: float  # the sum over its tokens
    score: float  # log_prob over the length penalty


def length_penalty(length, alpha=0.6):
    """((5 + length) / 6)^alpha: a sum of log probabilities only falls, so without it short answers win."""
    return ((5 + length) / 6) ** alpha


def beam_search(state, batch, max_new_tokens, bos, beam=4, alpha=0.6, eos=EOS):
    """For each of `batch` sequences its finished hypotheses, the best first -> list of lists of Hypothesis.

    `state` must hold batch * beam rows, those of one sequence side by side. At every step, of the extensions of a
    sequence, those among the best `beam` that end in eos are finished, and the best `beam` that do not live on. A
    sequence is done when no living hypothesis could still beat its best finished one, so only the first answer is
    sure to be the best that was within reach; what is alive when there is no more room counts as finished. With
    beam = 1 and alpha = 0 it is greedy decoding. `beam` and `alpha` default to the paper's.
    """
    if beam < 1 or max_new_tokens < 1:
        raise ValueError(f"beam and max_new_tokens must be at least 1, got {beam} and {max_new_tokens}")
    alive = [[((), 0.0)] for _ in range(batch)]  # per sequence: (ids, log_prob), the best first
    finished = [[] for _ in range(batch)]
    last = np.full((batch * beam, 1), bos)
    for length in range(1, max_new_tokens + 1):
        log_p = log_softmax(to_host(state.extend(last))).reshape(batch, beam, -1)
        parents = [_extend(alive[i], finished[i], log_p[i], beam, eos, alpha) for i in range(batch)]
        alive = [living for living, _ in parents]
        if length == max_new_tokens:
            break
        for i in range(batch):
            if _is_done(alive[i], finished[i], max_new_tokens, alpha):
                alive[i] = []
        if not any(alive):
            break
        rows = [i * beam + row for i, (_, chosen) in enumerate(parents) for row in _filled(chosen, beam, 0)]
        state.select(rows)
        last = np.array([ids[-1] for living in alive for ids in _filled([h[0] for h in living], beam, (PAD,))])[:, None]
    for i in range(batch):
        finished[i] += [_hypothesis(ids, log_prob, alpha) for ids, log_prob in alive[i]]
        finished[i].sort(key=lambda hypothesis: -hypothesis.score)
    return finished


def _extend(alive, finished, log_p, beam, eos, alpha):
    """Extend the living hypotheses of one sequence by one token -> the new living ones, and the row each came from."""
    V = log_p.shape[-1]
    totals = np.array([log_prob for _, log_prob in alive])[:, None] + log_p[: len(alive)]  # (alive, V)
    living, rows = [], []
    for rank, place in enumerate(_largest(totals.ravel(), 2 * beam)):  # eos comes once a row: enough others are left
        row, token = divmod(place, V)
        ids, log_prob = (*alive[row][0], token), float(totals[row, token])
        if token == eos:
            if rank < beam:
                finished.append(_hypothesis(ids, log_prob, alpha))
        elif len(living) < beam:
            living.append((ids, log_prob))
            rows.append(row)
    return living, rows


def _largest(x, count):
    """The places of the `count` largest entries of x (N,), the largest first, of equal ones the first."""
    count = min(count, len(x))
    if not count:
        return []
    places = np.flatnonzero(x >= np.partition(x, -count)[-count])  # few: quicker than to sort all
    return places[np.argsort(-x[places], kind="stable")][:count].tolist()


def _is_done(alive, finished, max_new_tokens, alpha):
    """Whether no living hypothesis can come out above the best finished one, however kindly it goes on."""
    if not alive or not finished:
        return not alive
    penalty = length_penalty(max_new_tokens if alpha > 0 else len(alive[0][0]) + 1, alpha)
    return alive[0][1] / penalty <= max(hypothesis.score for hypothesis in finished)


def _hypothesis(ids, log_prob, alpha):
    return Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), alpha))


def _filled(items, count, filler):
    """The items, and fillers up to `count`: rows of the batch that nobody looks at."""
    return list(items) + [filler] * (count - len(items))
