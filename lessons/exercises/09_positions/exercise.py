"""Exercise 09: the table of sines and cosines, and the step from one position to another.

Difficulty 2 of 5, 20 minutes. See lesson 09, "The same step is the same matrix".

Write the paper's table of positions,

    PE(p, 2i) = sin(p / 10000^(2i/C))        PE(p, 2i + 1) = cos(p / 10000^(2i/C))

with p = 0, 1, 2 ... and i = 0 ... C/2 - 1, which counts pairs of features. Half of the tables that one meets are not
this one, and models learn from them all the same, only more slowly. Then write the matrix that takes every position k
places further, PE(p + k) = PE(p) R.

    minitransformer check 09
"""

import math

import numpy as np


def sinusoids(length, C):
    """The vectors of the positions 0 ... length - 1 -> PE (length, C). C is even."""
    raise NotImplementedError(
        "begin with the frequencies: there are C/2 of them, one for each pair. Print them for C = 4"
    )


def rotation(k, C):
    """R (C, C) with PE(p + k) = PE(p) R for every p; k may be negative or 0."""
    raise NotImplementedError("take one pair: sin(ω(p + k)) = ... and cos(ω(p + k)) = ..., from sin(ωp) and cos(ωp)")
