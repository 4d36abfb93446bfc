"""Exercise 07: a test that finds leaks.

Difficulty 2 of 5, 25 minutes. See lesson 07, "How would you notice?".

Given is a model of which you know nothing but what it answers. May one of its positions see a later one? Write the test
that says so. It is tried on a bank of models, honest ones and leaky ones, and must be right about each of them: some
leak at one position only, some hardly at all.

    minitransformer check 07_leaks
"""

import numpy as np


def for_each(test):
    """Given: let a test of one model take a list of models, too, as the checker has a whole bank of them."""

    def tested(model, length, vocab_size):
        if isinstance(model, list):
            return [test(one, length, vocab_size) for one in model]
        return test(model, length, vocab_size)

    return tested


@for_each
def leak_test(model, length, vocab_size):
    """Does any output of the model depend on a later input? -> True (it leaks) or False (it is honest).

    model(ids) takes ids (B, length), whole numbers from 0 to vocab_size - 1, and returns logits (B, length,
    vocab_size): what it says at each position. The same ids always give the same logits, to the last bit. An output may
    depend on the input at its own position and on all before it.
    """
    raise NotImplementedError("call the model on some random ids first, then once more with one of them changed")
