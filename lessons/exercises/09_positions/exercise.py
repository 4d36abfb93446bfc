"""Exercise 09: the table of sines and cosines, and the step from one position to another.

Difficulty 2 of 5, 20 minutes. See lesson 09, "A clock for positions" and "The same step is the same matrix".

Write the paper's table of positions,

    PE_t,2i   = sin(t / 10000^(2i/C))
    PE_t,2i+1 = cos(t / 10000^(2i/C))

with the positions t = 0, 1, 2, ... and the pairs of features i = 0, 1, ..., C/2 - 1. Take care: a wrong table looks
right, and a model still learns something with it. Then write the matrix that takes every position j places further,
PE_(t+j) = PE_t turn(j).

    minitransformer check 09_positions
"""

import math

import numpy as np


def sinusoids(length, C):
    """The vectors of the positions 0, 1, ..., length - 1 -> PE (length, C). C is even."""
    raise NotImplementedError("start with the frequencies: there are C/2, one for each pair. Print them for C = 4")


def turn(j, C):
    """The matrix (C, C) with PE_(t+j) = PE_t turn(j), for every t. j may be negative or 0."""
    raise NotImplementedError("take one pair: write sin(ω(t + j)) and cos(ω(t + j)) in terms of sin ωt and cos ωt")
