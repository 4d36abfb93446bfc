"""Exercise 18: learn a token.

Difficulty 2 of 5, 25 minutes. See lesson 18, "A pair becomes a token".

A tokenizer of byte pairs learns one token after another. Each time it counts all pairs of neighbours inside the words
of a text, takes the pair that comes most often, and joins it into a new token, wherever it stands. Write both steps.

    minitransformer check 18_merge
"""

import numpy as np


def most_frequent_pair(words, counts):
    """words, a list of arrays of ids, and how often each of them comes in the text, an array -> a pair of ids.

    Each word is in the list once, and at least one has two tokens. No pair crosses the end of a word. In a row such as
    5 5 5 the pair (5, 5) stands twice. If several pairs come equally often, it is the one with the smaller first id,
    and then the one with the smaller second id.
    """
    raise NotImplementedError("count for one word by hand, such as 3 4 3 4: which pairs are in it, and how often each?")


def pairs_of(texts):
    """Given: your `most_frequent_pair` for one text after another -> (number of texts, 2) ids.

    Each text is a pair (words, counts). The checker calls it with many short texts.
    """
    return np.array([most_frequent_pair(words, counts) for words, counts in texts])


def merge_pair(ids, pair, new):
    """ids, a list, a pair (left, right) of ids, and the id `new` of the joined token -> the new list of ids.

    The text is read from left to right, and a token that has been joined cannot be joined again: with the pair (5, 5),
    the row 5 5 5 becomes `new` 5.
    """
    raise NotImplementedError("walk through the ids. By how many places do you go on after a pair, and after no pair?")


def merge_all(texts, pair, new):
    """Given: your `merge_pair` of one text after another -> all ids, each text filled up with −1 to its old length.

    The checker calls it with short texts, in which the pair may stand at the ends, several times, or nowhere.
    """
    return tuple(np.array([*merge_pair(list(ids), pair, new), *[-1] * len(ids)])[: len(ids)] for ids in texts)
