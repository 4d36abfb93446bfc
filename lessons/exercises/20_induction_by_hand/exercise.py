"""Exercise 20: two heads, set by hand, that continue what they have read.

Difficulty 3 of 5, 25 minutes. See lesson 20, "Let an earlier head bring it" and "Two heads that fit each other".

A word of T letters repeats after a period, and each row must say which letter comes next. Every position has features
for its own letter, then one for each of the T positions, then empty ones, as many as there are letters. Layer 1 looks
at the token before and writes its letter into the empty features. Layer 2 looks at the places that have heard the
letter of the row. Both are causal: a row sees itself and what stands before it, so position 0 hears itself. There is no
«bos» here, and layer 2 must not find position 0. You choose every entry, and there is no training.

You pass if the weights of both layers, and what the rows say, are within 0.02 of 0 and 1. Only rows are judged whose
letter stands once in a period and has been read before.

    minitransformer check 20_induction_by_hand
"""

import math

import numpy as np


def tokens(word, letters):
    """word: T numbers from 0 to letters - 1 -> x (T, C) with C = letters + T + letters: letter, position, nothing."""
    return np.hstack([np.eye(letters)[word], np.eye(len(word)), np.zeros((len(word), letters))])


def attention_map(x, W_q, W_k):
    """x (T, C), W_q and W_k (C, D) -> causal weights (T, T)."""
    q, k = x @ W_q, x @ W_k
    s = np.where(np.tri(len(x), dtype=bool), q @ k.T / math.sqrt(q.shape[-1]), -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def two_heads(letters, T):
    """The weights for words of T letters -> two tuples, with C = letters + T + letters and a D of your choice.

    layer 1: W_q, W_k, both (C, D), and W_v W_o as one matrix W_vo (C, C), whose result is added to x
    layer 2: W_q, W_k, both (C, D)
    """
    raise NotImplementedError("which features of a position does each query read, and which does each key offer?")


def continue_word(word, letters):
    """Given: run your two heads on a word -> first (T, T), second (T, T), says (T, letters).

    `first` and `second` are the weights of the two layers, and `says` is what layer 2 has read: the letters themselves.
    """
    x = tokens(word, letters)
    (W_q, W_k, W_vo), (W_q2, W_k2) = two_heads(letters, len(word))
    first = attention_map(x, W_q, W_k)
    y = x + first @ x @ W_vo
    second = attention_map(y, W_q2, W_k2)
    return first, second, second @ x[:, :letters]
