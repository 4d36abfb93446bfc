"""Exercise 16: beam search with the paper's length penalty.

Difficulty 4 of 5, 35 minutes. See lesson 16, "Keep several beginnings" and "Short answers win".

A model gives the log probabilities of the next token. Write the search for a whole answer. At each step, extend every
living beginning by every token, and sort the extensions by ln p, the best first. Of the first `beam` extensions, those
that end in eos are finished answers. Of all extensions that do not end in eos, the first `beam` live on. What still
lives after `max_new_tokens` tokens counts as finished, too. The result is the finished answer with the largest

    score = ln p(answer) / ((5 + T) / 6)^alpha          T tokens, eos included

    minitransformer check 16_beam_search
"""

import numpy as np

EOS = 2  # ends an answer; all other tokens go on


def greedy(log_p, max_new_tokens):
    """For comparison: always the likeliest token -> (ln p, ids)."""
    total, ids = 0.0, ()
    while len(ids) < max_new_tokens and EOS not in ids:
        row = log_p(ids)
        token = int(np.argmax(row))
        total, ids = total + float(row[token]), (*ids, token)
    return total, ids


def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    """The best answer of at most `max_new_tokens` tokens -> its score, and its ids.

    log_p(ids) -> (V,) gives the log probabilities of the token after a tuple of ids.
    """
    raise NotImplementedError("keep a list of (ln p, ids), at first [(0.0, ())], and write one step that extends it")
