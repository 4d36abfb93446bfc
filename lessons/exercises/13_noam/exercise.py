"""Exercise 13: the Noam schedule.

Difficulty 1 of 5, 10 minutes. See lesson 13, "The Noam schedule".

The paper's learning rate (section 5.3, equation 3) rises in a straight line for `warmup` steps, and then falls as
1/√step. Wider models get a smaller rate. `factor` is not in the paper: it multiplies the whole curve, and much code
calls it "lr".

    minitransformer check 13_noam
"""

import math

import numpy as np


def noam(step, C, warmup=4000, factor=1.0):
    """The learning rate of each step in the array `step`, whose integers count from 1 -> an array of the same length.

    C is the number of features of a token, and warmup the number of steps in which the rate rises. All steps come in
    one array, so that you can plot the curve with one call. (np.minimum and np.maximum compare arrays entry by entry,
    min and max do not.)
    """
    raise NotImplementedError("write the two branches as two arrays and plot them. Which one holds at which step?")
