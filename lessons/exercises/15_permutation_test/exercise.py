"""Exercise 15: a test for what a layer knows of places.

Difficulty 2 of 5, 20 minutes. See lesson 15, tool 5.

Write a test. A layer takes tokens x (T, C) to as many others. It is equivariant if it does not know where a token
stands: give it the tokens in another order, and its results come in that other order, and are the same otherwise. The
checker tries your test on a bank of layers, some of which are equivariant and some of which are not.

    minitransformer check 15_permutation_test
"""

import numpy as np


def is_equivariant(layer, x, rng):
    """Whether layer(tokens (T, C)) -> (T, C) is equivariant, tried on the tokens x (T, C) -> True or False.

    rng is a np.random.Generator, for whatever you want to draw (`rng.permutation(5)` is an order of 5 things). Numbers
    are equal except for rounding: sums in another order differ in their last digits.
    """
    raise NotImplementedError("draw an order. Then there are two ways to use it and the layer: which should agree?")


def verdicts(layers, x, rng):
    """Given: your test on one layer after the other -> a list of what it says. The checker calls this."""
    return [is_equivariant(layer, x, rng) for layer in layers]
