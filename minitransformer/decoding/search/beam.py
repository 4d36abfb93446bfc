"""Beam search with the paper's length penalty (section 6.1; Wu et al. 2016, equation 14)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.decoding.generate import log_softmax
from minitransformer.decoding.rereading import DecodingState, End, ends_and_filler


class Hypothesis(NamedTuple):
    """One answer."""

    ids: tuple[int, ...]  # without bos, ending in eos unless max_new_tokens came first
    log_prob: float  # the sum over its tokens
    score: float  # log_prob divided by the length penalty


Alive = tuple[tuple[int, ...], float]  # (ids, log_prob) of a hypothesis that has not ended


def length_penalty(length: int, alpha: float = 0.6) -> float:
    """((5 + length) / 6)^alpha. Each token lowers the sum of log probabilities, so without it short answers win."""
    return ((5 + length) / 6) ** alpha


def beam_search(
    state: DecodingState,
    batch: int,
    max_new_tokens: int | Sequence[int],
    bos: int | np.ndarray,
    beam: int = 4,
    alpha: float = 0.6,
    eos: End = "model",
) -> list[list[Hypothesis]]:
    """For each of `batch` sequences its finished hypotheses, the best first -> list of lists of Hypothesis.

    `state` holds one row for each sequence, so each source is encoded once; the search itself repeats the rows. It
    reads `bos` first: an id, or prompts (batch, n). `eos` is an id or several, see `generate_tokens`. At every step
    the extensions of a sequence are ranked: those among the best `beam` that end in eos are finished, and
    the best `beam` of those that do not end stay alive. A sequence is done, and its rows leave the state, when no
    living hypothesis can still beat its best finished one, so only the first answer is sure to be the best of the
    search. Hypotheses that are alive after `max_new_tokens`, one number or one for each sequence, count as finished.
    With beam = 1 and alpha = 0 this is greedy decoding. The defaults of `beam` and `alpha` are the paper's. Raises
    ValueError if beam or max_new_tokens is less than 1.
    """
    check_integer("beam", beam, least=1)
    limits = np.broadcast_to(max_new_tokens, batch).tolist()
    for limit in limits:
        check_integer("max_new_tokens", limit, least=1)
    alive: list[list[Alive]] = [[((), 0.0)] for _ in range(batch)]  # per sequence, the best first
    finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
    ends, _ = ends_and_filler(getattr(state, "model", None), eos)
    last = np.asarray(bos) if np.ndim(bos) else np.full((batch, 1), bos)  # of each in `alive`: one row of the state
    for length in range(1, max(limits, default=0) + 1):
        log_p = log_softmax(to_host(state.extend(last)))  # (rows, V)
        rows: list[int] = []  # the parent of each hypothesis that goes on
        start = 0
        for i, living in enumerate(alive):
            end = start + len(living)
            alive[i], parents = _extend(living, finished[i], log_p[start:end], beam, ends, alpha)
            if length == limits[i]:
                finished[i] += [_hypothesis(ids, log_prob, alpha) for ids, log_prob in alive[i]]
            if length == limits[i] or _is_done(alive[i], finished[i], limits[i], alpha):
                alive[i], parents = [], []
            rows += [start + row for row in parents]
            start = end
        if not rows:
            break
        state.select(rows)
        last = np.array([[ids[-1]] for living in alive for ids, _ in living])
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in finished]


def _extend(alive, finished, log_p, beam, ends, alpha):
    """Extend the living hypotheses of one sequence by one token -> the new living ones, and each one's parent row."""
    if not alive:
        return [], []
    V = log_p.shape[-1]
    totals = np.array([log_prob for _, log_prob in alive])[:, None] + log_p  # (alive, V)
    living, rows = [], []
    for rank, place in enumerate(_largest(totals.ravel(), (1 + len(ends)) * beam)):  # `beam` do not end
        row, token = divmod(place, V)
        ids, log_prob = (*alive[row][0], token), float(totals[row, token])
        if token in ends:
            if rank < beam:
                finished.append(_hypothesis(ids, log_prob, alpha))
        elif len(living) < beam:
            living.append((ids, log_prob))
            rows.append(row)
    return living, rows


def _largest(x, count):
    """The indices of the `count` largest entries of x (N,), the largest first; of equal ones the first comes first.

    x is cut into parts. Of their maxima, the one in place `count` is reached by at least `count` entries of x, and by
    few others: only these have to be sorted.
    """
    count = min(count, len(x))
    size = max(1, len(x) // (8 * count))
    maxima = x[: len(x) // size * size].reshape(-1, size).max(axis=-1)
    places = np.flatnonzero(x >= np.partition(maxima, -count)[-count])
    return places[np.argsort(-x[places], kind="stable")][:count].tolist()


def _is_done(alive, finished, max_new_tokens, alpha):
    """Whether no living hypothesis can still beat the best finished one, even if its next tokens were certain."""
    if not alive or not finished:
        return not alive
    penalty = length_penalty(max_new_tokens if alpha > 0 else len(alive[0][0]) + 1, alpha)
    return alive[0][1] / penalty <= max(hypothesis.score for hypothesis in finished)


def _hypothesis(ids, log_prob, alpha):
    return Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), alpha))
