"""Exercise 21: another map with the same output.

Difficulty 3 of 5, 25 minutes. See lesson 21, "What the rest of the model gets" and "The one direction".

A row of attention has the weights p (S,) and the values v (S, D), and returns o = p v. First count the independent
directions in which p can move, so that neither o nor the sum of the weights changes. Values may depend on each other:
then there are more directions than S - D - 1.

Then move. A wish is any vector (S,): a one at key 3 and zeros elsewhere wish for more weight on key 3. Take the part of
it that neither o nor the sum notices. Start at p and walk in this direction until the first weight is 0.

    minitransformer check 21_another_map
"""

import numpy as np


def count_directions(v):
    """v (S, D) -> the number of independent directions that leave o and the sum of the weights as they are."""
    raise NotImplementedError("how many of the D + 1 equations are independent?")


def another_map(p, v, wish):
    """p (S,), v (S, D), wish (S,) -> the weights (S,) at the end of the walk from p.

    The direction is the wish, less its projection on what is noticed. It is never 0 here, and no weight of p is.
    """
    raise NotImplementedError("write the direction first. How far can you go before a weight becomes negative?")
