"""The paper's Transformer, post-norm, in JAX: a function of the weights that jit compiles, to be timed against ours.

minitransformer bench --peer docs/peers/jax_step.py
"""

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import nn, random
from jax import numpy as jnp

from experiments.measuring.steps import BETAS, EPS, LABEL_SMOOTHING, LR, MAX_NORM, Size
from minitransformer.functional import sinusoidal_positions
from minitransformer.models import Transformer
from minitransformer.vocabulary import PAD


def step(size: Size, dropout: float, threads: int) -> Callable[[], Any]:
    """The step of `numpy_step` from the same weights, compiled -> a function without arguments that returns the loss.

    JAX takes all processors unless `threads` is 1, which it must be told before its first use in a process.
    """
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    weights = {name: jnp.asarray(x) for name, x in Transformer(size.config(dropout)).state_dict().items()}
    m, v = (jax.tree.map(jnp.zeros_like, weights) for _ in "mv")
    state, batch = [weights, m, v, random.key(0), 0], [jnp.asarray(x) for x in size.make_batch()]
    update = jax.jit(_update, static_argnums=(1, 2), donate_argnums=0)

    def take() -> Any:
        state[:], loss = update(state, size, dropout, *batch)
        return loss.block_until_ready()

    return take


def _update(state, size, dropout, source, target, targets):
    """A step of Adam with clipping, from and to [weights, m, v, the key of the random numbers, steps taken]."""
    w, m, v, key, t = state
    key, of_step = random.split(key)
    loss, grads = jax.value_and_grad(_loss)(w, size, dropout, of_step, source, target, targets)
    factor = jnp.minimum(MAX_NORM / (jnp.sqrt(sum(jnp.vdot(g, g) for g in grads.values())) + 1e-6), 1.0)
    t, (beta1, beta2) = t + 1, BETAS
    m = {name: beta1 * m[name] + (1 - beta1) * factor * g for name, g in grads.items()}
    v = {name: beta2 * v[name] + (1 - beta2) * (factor * g) ** 2 for name, g in grads.items()}
    a, b = LR / (1 - beta1**t), 1 / (1 - beta2**t)
    return [{name: w[name] - a * m[name] / (jnp.sqrt(b * v[name]) + EPS) for name in w}, m, v, key, t], loss


def _loss(w, size, dropout, key, source, target, targets):
    """The mean cross-entropy with label smoothing of all targets that are not padding."""
    part = _parts(w, size.num_heads, dropout, key)
    E, positions = w["source_embedding.tokens.E"], sinusoidal_positions(size.length, size.d_model, np.float32)
    memory, y = (part["drop"](E[ids] * math.sqrt(size.d_model) + positions) for ids in (source, target))
    of_source, of_target = ((ids != PAD)[:, None, None] for ids in (source, target))
    of_target = of_target & jnp.tril(jnp.ones((size.length, size.length), bool))
    for i in range(size.num_layers):
        memory = part["attention"](memory, memory, f"encoder.layers.{i}.self_attention", of_source)
        memory = part["feed_forward"](memory, f"encoder.layers.{i}.feed_forward")
    for i in range(size.num_layers):
        y = part["attention"](y, y, f"decoder.layers.{i}.self_attention", of_target)
        y = part["attention"](y, memory, f"decoder.layers.{i}.cross_attention", of_source)
        y = part["feed_forward"](y, f"decoder.layers.{i}.feed_forward")
    log_p, counts = nn.log_softmax(y @ E.T), targets != PAD
    right = jnp.take_along_axis(log_p, targets[..., None], -1)[..., 0]
    losses = -(1 - LABEL_SMOOTHING) * right - LABEL_SMOOTHING * log_p.mean(-1)
    return jnp.where(counts, losses, 0).sum() / counts.sum()


def _parts(w, num_heads, dropout, key):
    """The layers as functions of their input and of the name of their weights in `w` -> {name: function}."""
    calls = itertools.count()

    def drop(x):
        keep = random.bernoulli(random.fold_in(key, next(calls)), 1 - dropout, x.shape) if dropout else True
        return jnp.where(keep, x / (1 - dropout), 0)

    def linear(x, name):
        return x @ w[f"{name}.W"] + w[f"{name}.b"]

    def add_and_norm(x, y, name):
        x = x + drop(y)
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w[f"{name}.norm.gamma"] + w[f"{name}.norm.beta"]

    def attention(x, memory, name, allowed):
        C = x.shape[-1]
        if x is memory:
            qkv = jnp.split(linear(x, f"{name}.sublayer.qkv"), 3, -1)
        else:
            qkv = [linear(x, f"{name}.sublayer.q"), *jnp.split(linear(memory, f"{name}.sublayer.kv"), 2, -1)]
        q, k, v = (y.reshape(*y.shape[:2], num_heads, -1).swapaxes(1, 2) for y in qkv)
        p = nn.softmax(jnp.where(allowed, q @ k.swapaxes(2, 3) / math.sqrt(C // num_heads), -jnp.inf))
        return add_and_norm(x, linear((p @ v).swapaxes(1, 2).reshape(x.shape), f"{name}.sublayer.output"), name)

    def feed_forward(x, name):
        h = nn.relu(linear(x, f"{name}.sublayer.expand"))
        return add_and_norm(x, linear(h, f"{name}.sublayer.contract"), name)

    return {"drop": drop, "attention": attention, "feed_forward": feed_forward}
