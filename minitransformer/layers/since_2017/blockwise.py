"""The loss of a batch whose logits are computed a block at a time: all of them are often a step's largest array."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import backend_name, to_device, xp
from minitransformer.core import Layer
from minitransformer.layers.losses import counted_targets, padding_of

LIBRARY = __name__.partition(".")[0] + "."
LOGITS = 2**23  # in a block, 34 MB in float32: enough rows for fast matrix products, at the paper's vocabulary 226
GPU_LOGITS = 2**27  # 537 MB, for few launches


class Identity(Layer):
    """The head of a model that makes its logits itself: what goes in comes out."""

    def forward(self, y: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, None]:
        """y -> y."""
        return y, None

    def backward(self, dy: xp.ndarray, cache: None) -> xp.ndarray:
        """dy -> dy."""
        return dy


def has_features(model: Any) -> bool:
    """Whether a model can be computed as `features`, then `head`, as the models of the package can.

    Only the exact classes of the package are known to have a head that takes any number of tokens, and a forward pass
    that is these two: a subclass, or a head of somebody's own, is called through `forward` alone.
    """
    classes = type(model), type(getattr(model, "head", None))
    return hasattr(model, "features") and all(kind.__module__.startswith(LIBRARY) for kind in classes)


def features_and_head(model: Any) -> tuple[Callable[..., Any], Layer]:
    """A model's features, and the head from features to logits. The features of any other model are its logits."""
    return (model.features, model.head) if has_features(model) else (model.forward, Identity())


class BlockwiseLoss(NamedTuple):
    """What `blockwise_loss` returns."""

    loss: xp.ndarray  # 0-d
    dy: xp.ndarray | None  # like the features
    accuracy: xp.ndarray | None  # 0-d, the share of targets whose logit is the largest


def most_logits() -> int:
    """How many logits are computed at a time."""
    return LOGITS if backend_name() == "numpy" else GPU_LOGITS


def blockwise_loss(
    model: Any,
    y: xp.ndarray,
    targets: np.ndarray,
    loss_fn: Any,
    weight: float | None = None,
    rng: np.random.Generator | None = None,
    measure: bool = False,
    max_logits: int | None = None,
) -> BlockwiseLoss:
    """The loss of a model's features y, and its gradient, without an array of all logits.

    y (B, T, C) features, targets (B, T) ids on the host. With V tokens in the vocabulary the logits are V / C times as
    large as y: often the largest array of a training step. Each token's loss needs no other token's logits, so head and
    loss are computed forward and backward for one block of tokens after another, and the logits of a block are dropped
    before those of the next are made. Tokens whose target is padding have no block: their gradient is 0. A classifier's
    y (B, T, C) with targets (B,) is cut into blocks of sequences instead.

    Forward    z_n = head(y_n)      loss = sum_b (M_b / M) loss_b,  loss_b the mean over the M_b targets of block b
    Chain      dz_n = (M_b / M) dloss_b/dz_n      dy_n = head_backward(dz_n)
               every block adds its part to the gradients of the head's parameters: dE = sum_n dz_n y_n^T
    Remember   nothing: the gradient is made in the same call

    With `weight`, weight times the gradient is added to the head's parameters and returned as dy; with None there is
    no backward pass. `loss_fn` is a `CrossEntropyLoss` or has its three methods. `rng` is for dropout in the head. A
    block has at most `max_logits` logits, by default `most_logits()`, or those of one token. Also returns the accuracy
    if `measure`. Raises IndexError for targets outside the vocabulary.
    """
    _, head = features_and_head(model)
    tokens, targets_n = y.reshape(targets.size, *y.shape[targets.ndim :]), targets.reshape(-1)
    total = max(loss_fn.num_terms(targets), 1)
    loss, right, dy = xp.zeros((), y.dtype), 0, None if weight is None else xp.zeros_like(tokens)
    max_logits = most_logits() if max_logits is None else max_logits
    per_token = model.config.vocab_size if has_features(model) else y.shape[-1]
    for rows, block in _blocks(targets_n, padding_of(loss_fn, model), max(1, max_logits // per_token)):
        share = loss_fn.num_terms(block) / total
        loss_of_block, dy_rows, is_right = _loss_of_block(
            head, tokens[rows], block, loss_fn, None if dy is None else weight * share, rng, measure
        )
        loss += share * loss_of_block
        if dy is not None:
            dy[rows] = dy_rows
        if measure:
            right = is_right.sum() + right
    accuracy = xp.asarray(right / total, y.real.dtype) if measure else None
    return BlockwiseLoss(loss, None if dy is None else dy.reshape(y.shape), accuracy)


def _loss_of_block(head, y, targets, loss_fn, weight, rng, measure):
    """The loss, dy or None, and which targets have the largest logit or None. The logits live in this call alone."""
    logits, cache = head.forward(y, rng)
    is_right = logits.argmax(axis=-1) == to_device(targets) if measure else None
    loss, cache_loss = loss_fn.forward(logits, targets)
    dy = None if weight is None else head.backward(loss_fn.backward(weight, cache_loss), cache)
    return loss, dy, is_right


def _blocks(targets: np.ndarray, padding: int | None, size: int) -> Iterator[tuple[slice | xp.ndarray, np.ndarray]]:
    """(rows, targets of these rows) of `size` targets that count; rows are a slice, which copies nothing, if all do."""
    counted = counted_targets(targets, padding)
    for start in range(0, len(counted), size):
        rows = counted[start : start + size]
        all_count = len(counted) == len(targets)
        yield slice(start, start + len(rows)) if all_count else to_device(rows), targets[rows]
