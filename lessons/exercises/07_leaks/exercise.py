"""Exercise 07: a test that finds leaks.

Difficulty 2 of 5, 25 minutes. See lesson 07, "How would you notice?".

You get a model that you cannot look into. You can only give it inputs and read its outputs. Can any of its positions
see a later one? Write a test that says so. The checker tries your test on many models, honest ones and leaky ones, and
it must be right about each of them. Some models leak at one position only, and some leak very little.

    minitransformer check 07_leaks
"""

import numpy as np


def for_each(test):
    """Given: let a test of one model also take a list of models, because the checker has many."""

    def tested(model, length, vocab_size):
        if isinstance(model, list):
            return [test(one, length, vocab_size) for one in model]
        return test(model, length, vocab_size)

    return tested


@for_each
def leak_test(model, length, vocab_size):
    """Does any output of the model depend on a later input? -> True (it leaks) or False (it is honest).

    model(ids) takes ids (B, length), integers from 0 to vocab_size - 1, and returns logits (B, length, vocab_size). The
    same ids always give the same logits, in every bit. The output at a position may depend on the input at this
    position and on all inputs before it.
    """
    raise NotImplementedError("call the model on some random ids. Then change one of them and call it again")
