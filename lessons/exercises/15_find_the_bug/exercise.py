"""Exercise 15: find the bug.

Difficulty 3 of 5, 30 minutes. See lesson 15, "Tool 4: the gradient check" and "Tool 6: the token histogram".

Each of these three short functions has one bug. All of them run, return the right shapes, and were used in training.
Each docstring says what a user has noticed. Find the bug, then write the function without it: copy the lines and change
one.

    minitransformer check 15_find_the_bug
"""

import numpy as np

PAD, BOS, EOS = 0, 1, 2  # padding, and the tokens before and after a sequence


def layer_norm(x, gamma, beta, eps=1e-5):
    """Given, and right: x (B, T, C), gamma and beta (C,) -> y (B, T, C), and a cache for backward."""
    mu = x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def buggy_layer_norm_backward(dy, cache):
    """dy (B, T, C) -> dx (B, T, C), dgamma (C,), dbeta (C,).

    Noticed: the gradient check passes on a new model. After a hundred steps of training it fails.
    """
    x_hat, sigma, gamma = cache
    mu_path = dy.mean(axis=-1, keepdims=True)
    sigma_path = x_hat * (dy * x_hat).mean(axis=-1, keepdims=True)
    dx = gamma * (dy - mu_path - sigma_path) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def layer_norm_backward(dy, cache):
    """The same without the bug."""
    raise NotImplementedError("which number in a new LayerNorm hides the bug? Follow it on the way back from y to x")


def buggy_greedy(model, B, max_len):
    """model(ids (B, T)) -> logits (B, T, V). Row t of the logits predicts what follows ids[:, : t + 1].

    -> ids (B, T) of the answers, T <= max_len: each row up to its EOS, then PAD until the longest row ends.

    Noticed: one sentence at a time, all translations are good. In batches, many of them break off in the middle.
    """
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.any():
        token = model(ids)[:, -1].argmax(axis=-1)
        token[done] = PAD
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def greedy(model, B, max_len):
    """The same without the bug."""
    raise NotImplementedError("take two rows of different length, and go through the loop by hand. When does it stop?")


def buggy_masked_loss(logits, targets):
    """logits (B, T, V), targets (B, T), padded with PAD -> the mean cross-entropy of a token in nats, a number.

    Noticed: the loss falls when a batch contains sentences of very different lengths.
    """
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    losses = -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]  # (B, T)
    return (losses * (targets != PAD)).mean()


def masked_loss(logits, targets):
    """The same without the bug."""
    raise NotImplementedError("add a column of padding to a batch. What should the loss do, and what does it do?")
