"""Exercise 10: the backward pass of LayerNorm.

Difficulty 3 of 5, 30 minutes. See lesson 10, "Three paths".

The forward is given. It subtracts the mean of each token and divides by σ = √(variance + eps). Then come the scale γ
and the shift β, which all tokens share. Write the backward pass. Here γ is random, as in a trained model.

    minitransformer check 10_layer_norm_backward
"""

import numpy as np


def layer_norm(x, gamma, beta, eps=1e-5):
    """x (B, T, C), gamma and beta (C,) -> y (B, T, C), and a cache for backward: x̂ (B, T, C), σ (B, T, 1), γ (C,)."""
    mu = x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def layer_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), dgamma (C,), dbeta (C,)."""
    x_hat, sigma, gamma = cache
    raise NotImplementedError(
        "write dbeta and dgamma first: which tokens used them? Then dx_hat, and dx by its three paths"
    )
