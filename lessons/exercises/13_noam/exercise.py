"""Exercise 13: the Noam curve.

Difficulty 1 of 5, 10 minutes. See lesson 13, "The Noam schedule".

The paper's learning rate (section 5.3, equation 3) rises in a straight line for w steps, and then falls as 1/√s. Wider
models get a smaller one. `factor` is not in the paper: it multiplies the whole curve, and much code calls it "lr".

    minitransformer check 13_noam
"""

import math

import numpy as np


def noam(s, d_model, w=4000, factor=1.0):
    """The learning rate of each step in s (S,), integers that count from 1 -> (S,).

    d_model is the number of features of a token, w the number of steps of warm-up. All steps come in one array, so that
    the curve can be plotted by one call (np.minimum and np.maximum compare arrays entry by entry, min and max do not).
    """
    raise NotImplementedError("write the two branches as two arrays and plot them. Which of them holds at which step?")
