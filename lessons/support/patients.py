"""The patients of lesson 15, wrong functions that take the place of the library's. This file gives them away.

They are written out as they were published, in plain NumPy. A comment says what would be right. The museum in the tests
exhibits those that were published.
"""

import contextlib
import pkgutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from minitransformer.core import Parameter
from minitransformer.data.tasks import Batch, append_eos
from minitransformer.decoding.generate import log_softmax
from minitransformer.exercises.known import known
from minitransformer.exercises.planting import replaced
from minitransformer.models.transformer import DecodeCache, normal
from minitransformer.vocabulary import EOS, PAD


def layer_norm_backward(dy, x_hat, rstd, gamma):
    def mean(features):
        return features.mean(axis=-1, keepdims=True)

    tokens = tuple(range(dy.ndim - 1))
    dx = rstd * gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat))
    # right: dx = rstd * (dx_hat - mean(dx_hat) - x_hat * mean(dx_hat * x_hat))  # where dx_hat = dy * gamma
    return dx, (dy * x_hat).sum(axis=tokens), dy.sum(axis=tokens)


def embedding_backward(dy, cache, dE):
    ids, scale = cache
    dE[ids] += scale * dy
    # right: np.add.at(dE, ids, scale * dy)


def generate_tokens(state, prompt, max_new_tokens, choose=None, *, eos="model", no_repeat=0):
    ids, done = prompt, np.zeros(len(prompt), dtype=bool)
    for _ in range(max_new_tokens):
        log_p = log_softmax(state.extend(ids))
        token = (choose(log_p) if choose else log_p.argmax(axis=-1)).astype(prompt.dtype)
        prices = np.where(done, 0, log_p[np.arange(len(token)), token])
        token = np.where(done, PAD, token)
        yield token, prices
        done = done | (token == EOS)
        if done.any():
            # right: if done.all():
            return
        ids = token[:, None]


def embedding_matrices(model, rng, dtype):
    shape = model.config.vocab_size, model.config.d_model

    def draw():
        return Parameter(normal(rng, shape, 1.0, dtype))
        # right: return Parameter(normal(rng, shape, C**-0.5, dtype))

    source = draw()
    target = source if model.config.tie_embeddings else draw()
    return source, target, source if model.config.has_tied_output else draw()


def split_heads(x, num_heads):
    B, T, C = x.shape
    return x.reshape(B, num_heads, T, C // num_heads)
    # right: return x.reshape(B, T, num_heads, C // num_heads).transpose(0, 2, 1, 3)


def merge_heads(*parts):
    merged = [part.reshape(len(part), part.shape[2], -1) for part in parts]
    # right: merged = [part.transpose(0, 2, 1, 3).reshape(len(part), part.shape[2], -1) for part in parts]
    return np.concatenate(merged, axis=-1)


def decode(model, target, memory, source, rng=None):
    y, cache_embedding = model.target_embedding.forward(target, rng)
    allowed = model.target_allowed(target)
    # right: allowed = causal_mask(target.shape[1]) & model.target_allowed(target)
    z, cache_decoder = model.decoder.forward(y, memory, allowed, model.source_allowed(source), rng)
    return z, DecodeCache(cache_embedding, cache_decoder)


def sinusoidal_positions(length, d_model, dtype=np.float32):
    pair = np.arange(0, d_model, 2)  # the 2i of the formula
    angles = np.outer(np.arange(length), 10000.0 ** (-2 * pair / d_model))
    # right: angles = np.outer(np.arange(length), 10000.0 ** (-pair / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model).astype(dtype)


def attention_backward(dy, cache):
    q, k, v, p, _, scale, *_ = cache  # q has its scale already
    dp = dy @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dk = (q.swapaxes(-1, -2) @ ds).reshape(k.shape)
    # right: dk = ds.swapaxes(-1, -2) @ q
    return scale * (ds @ k), dk, p.swapaxes(-1, -2) @ dy, None


def residual_backward(layer, dy, cache):
    dsum = layer.norm.backward(dy, cache.norm)
    ds = layer.dropout.backward(dsum, cache.dropout)
    dx, dcontext = layer._sublayer_backward(ds, cache.sublayer)
    return (dx, *dcontext) if dcontext else dsum + dx
    # right: return (dsum + dx, *dcontext) if dcontext else dsum + dx


def make_batch(source, answer):
    target_out = append_eos(answer)
    target_in = target_out
    # right: target_in = np.concatenate([bos, answer], axis=1)[:, : target_out.shape[1]]
    return Batch(append_eos(source), target_in, target_out)


class Patient(NamedTuple):
    """A wrong model."""

    name: str  # a sentence
    lesson: str  # how the mistake arises, or the question that finds it
    instead: dict[str, Any]  # {the library's function: the wrong one}

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Inside a `with` block the library has this mistake."""
        with contextlib.ExitStack() as stack:
            for function, wrong in self.instead.items():
                stack.enter_context(replaced(pkgutil.resolve_name(f"minitransformer.{function}"), wrong))
            yield


def patient(id, lesson, instead):
    """A mistake of the list, with {the library's function: the wrong one}."""
    return Patient(known(id).name, lesson, instead)


PATIENTS = (
    patient(
        "gamma-outside-sums",
        "Published. Exact at γ = 1, where every model starts, and 54 % wrong later.",
        {"functional.layer_norm:_layer_norm_backward": layer_norm_backward},
    ),
    patient(
        "token-twice",
        "Published. dE[ids] += dy writes each row once, whatever the number of repeats.",
        {"functional:embedding_backward": embedding_backward},
    ),
    patient(
        "stops-with-first-row",
        "any for all: the shortest answer of a batch cuts all the others.",
        {"decoding:generate_tokens": generate_tokens},
    ),
    patient(
        "embeddings-too-large",
        "PyTorch's default. Times sqrt(d_model), and again as output: what is the loss before training?",
        {"models:Transformer._embedding_matrices": embedding_matrices},
    ),
    patient(
        "heads-reshaped",
        "The shape is right, positions are mixed, and the two undo each other: every gradient check passes.",
        {"functional:split_heads": split_heads, "functional:merge_heads": merge_heads},
    ),
    patient(
        "causal-mask-off",
        "Published. The loss is splendid, what the model writes is not. Try random targets: a leak learns them.",
        {"models:Transformer.decode": decode},
    ),
    patient(
        "pairs-counted-twice",
        "The 2i of the paper is the feature's index already. Wrong in eight public repositories, and it trains.",
        {"functional:sinusoidal_positions": sinusoidal_positions},
    ),
    patient(
        "keys-reshaped",
        "Published. A reshape makes any shape fit: it reads the same numbers in another order.",
        {"functional:scaled_dot_product_attention_backward": attention_backward},
    ),
    patient(
        "residual-forgotten",
        "Published, in a decoder. Two paths lead from x to y, so two gradients come back and are added.",
        {"layers:Residual.backward": residual_backward},
    ),
    patient(
        "target-not-shifted",
        "The decoder reads what it is to say, so it learns to repeat one token - and has none to repeat in decoding.",
        {"data.tasks:make_batch": make_batch},
    ),
)

ORDER = (4, 0, 9, 1, 3, 5, 7, 2, 8, 6)  # which of them is patient 1, patient 2, ...


def admitted(number: int) -> contextlib.AbstractContextManager[None]:
    """Inside a `with` block the library has the mistake of this patient, 1 to 10; patient 0 is healthy."""
    return PATIENTS[ORDER[number - 1]].planted() if number else contextlib.nullcontext()
