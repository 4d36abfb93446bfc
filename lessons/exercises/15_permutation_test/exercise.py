"""Exercise 15: a test for what a layer knows about positions.

Difficulty 2 of 5, 20 minutes. See lesson 15, "Tool 5: the permutation test".

Write a test. A layer takes tokens x (T, C) and returns as many. It is equivariant if it does not know where a token is:
put the tokens in another order, and the results come in this other order, otherwise unchanged. The checker tries your
test on many layers. Some of them are equivariant and some are not.

    minitransformer check 15_permutation_test
"""

import numpy as np


def is_equivariant(layer, x, rng):
    """Whether layer(tokens (T, C)) -> (T, C) is equivariant, tried on the tokens x (T, C) -> True or False.

    rng is a np.random.Generator, if you want to draw something: `rng.permutation(5)` is a random order of 5 things.
    Equal numbers may differ by rounding, because sums in another order differ in their last digits.
    """
    raise NotImplementedError("draw an order. You can use it before the layer or after it: what should agree?")


def verdicts(layers, x, rng):
    """Given: your test on one layer after another -> a list of what it says. The checker calls this."""
    return [is_equivariant(layer, x, rng) for layer in layers]
