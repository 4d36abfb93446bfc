"""Exercise 10: the backward pass of RMSNorm.

Difficulty 2 of 5, 15 minutes. See lesson 10, "Three paths" and "RMSNorm: one path less".

The forward is given. It divides each token by rms = √(mean of its squares + eps). Then comes the scale γ, which all
tokens share. No mean is subtracted and nothing is added. Write the backward pass.

    minitransformer check 10_rms_norm_backward
"""

import numpy as np


def rms_norm(x, gamma, eps=1e-5):
    """x (B, T, C), gamma (C,) -> y (B, T, C), and a cache for backward: x̂ (B, T, C), rms (B, T, 1), γ (C,)."""
    rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    x_hat = x / rms
    return gamma * x_hat, (x_hat, rms, gamma)


def rms_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), dgamma (C,)."""
    x_hat, rms, gamma = cache
    raise NotImplementedError("write dgamma first. Then count the paths from one x_j to the loss: how many are there?")
