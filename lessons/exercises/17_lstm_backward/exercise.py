"""Exercise 17: the LSTM, backward through time.

Difficulty 4 of 5, 40 minutes. See lesson 17, "Two ways out of a cell".

The forward of a long short-term memory is given. It reads the T tokens of each sequence one after the other, and each
step gets two things from the step before it: what that step said, y, and what it remembers, the cell. Three gates, all
between 0 and 1, decide what is forgotten, what is written to the cell, and what is read from it. Write the backward
pass: walk from the last step to the first, and hand two gradients from each step to the one before it.

    minitransformer check 17_lstm_backward
"""

import numpy as np


def sigmoid(x):
    """Any array -> an array of the same shape, with entries between 0 and 1."""
    return 1 / (1 + np.exp(-x))


def lstm(x, W_x, W_y, b):
    """x (B, T, C), W_x (C, 4 width), W_y (width, 4 width), b (4 width,) -> y (B, T, width), and a cache for backward.

    The columns of the matrices are four blocks, for the gates read, write and forget, and for what is new. The first
    step gets zeros from the step before it.
    """
    B, T, _ = x.shape
    said = cell = np.zeros((B, len(W_y)), dtype=x.dtype)
    steps = []
    for t in range(T):
        sums = x[:, t] @ W_x + said @ W_y + b  # (B, 4 width)
        read, write, forget, new = np.split(sums, 4, axis=-1)
        read, write, forget, new = sigmoid(read), sigmoid(write), sigmoid(forget), np.tanh(new)
        said_before, cell_before = said, cell
        cell = forget * cell_before + write * new
        said = read * np.tanh(cell)
        steps.append((read, write, forget, new, cell, said_before, cell_before))
    y = np.stack([step[0] * np.tanh(step[4]) for step in steps], axis=1)
    return y, (x, W_x, W_y, steps)


def lstm_backward(dy, cache):
    """dy (B, T, width), which is dLoss/dy -> dx (B, T, C), dW_x (C, 4 width), dW_y (width, 4 width), db (4 width,)."""
    x, W_x, W_y, steps = cache
    raise NotImplementedError(
        "write one step first: which two paths lead out of the cell of step t, and which two out of what it says?"
    )
