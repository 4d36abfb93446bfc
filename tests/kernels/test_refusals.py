"""Wrong arguments are refused before the dispatch: on every backend in the same words, and no kernel is launched.

A kernel trusts the shapes that it is given. With a gamma of length 5 for 8 features, or 2 targets for 6 rows, it would
read memory that belongs to other arrays, and nothing would say so.
"""

from typing import NamedTuple

import numpy as np
import pytest

from minitransformer.backend import to_device, use_backend
from minitransformer.functional import (
    cross_entropy,
    cross_entropy_backward,
    dropout,
    dropout_backward,
    embedding,
    embedding_backward,
    layer_norm,
    layer_norm_backward,
    relative_bias_backward,
    relu_backward,
    softmax,
    softmax_backward,
)
from minitransformer.functional.embedding import scatter_add
from minitransformer.kernels import launch
from minitransformer.system.generators import make_generator
from minitransformer.training.optimizers import adam_update
from tests.kernels.cuda_on_cpu import kernels_in
from tests.strict.strict import strict

ROWS, C, V = 6, 8, 5


class CupyWithoutGpu:
    """`strict` under CuPy's name, so that `fused` dispatches to the kernels. It cannot run them."""

    __name__ = "cupy"

    def __getattr__(self, name):
        return getattr(strict, name)


BACKENDS = {"numpy": "numpy", "strict": strict, "cupy": CupyWithoutGpu()}


def numbers(*shape, dtype=np.float32):
    """An array on the device."""
    return to_device(np.linspace(-1.0, 1.0, int(np.prod(shape)), dtype=dtype).reshape(shape))


def ids(*shape):
    """Token ids on the host, all 1."""
    return np.ones(shape, dtype=np.int64)


def normalise(x=(ROWS, C), gamma=(C,), beta=(C,)):
    return layer_norm(numbers(*x), numbers(*gamma), numbers(*beta))


def normalise_backward(dy=(ROWS, C)):
    with use_backend("numpy"):
        _, cache = normalise()
    return layer_norm_backward(numbers(*dy), type(cache)(*map(to_device, cache)))


def loss(targets=(ROWS,), smoothing=0.1, pad=0, dtype=np.int64):
    return cross_entropy(numbers(ROWS, V), to_device(np.ones(targets, dtype)), smoothing, pad)


def loss_backward(dloss=()):
    with use_backend("numpy"):
        _, cache = loss()
    on_device = {name: to_device(getattr(cache, name)) for name in ("p", "targets", "share")}
    return cross_entropy_backward(numbers(*dloss), cache._replace(**on_device))


def weights(allowed=(ROWS, V), dtype=bool):
    return softmax(numbers(ROWS, V), to_device(np.ones(allowed, dtype)))


def drop(rate=0.5, rng=None):
    return dropout(numbers(ROWS, C), rate, make_generator(0) if rng is None else rng)


def drop_backward(dy=(ROWS, C)):
    with use_backend("numpy"):
        _, cache = drop()
    return dropout_backward(numbers(*dy), cache._replace(keep=to_device(cache.keep)))


def embed_backward(dy=(2, 3, C), table=(V, C)):
    with use_backend("numpy"):
        _, cache = embedding(ids(2, 3), numbers(V, C))
    return embedding_backward(numbers(*dy), cache, numbers(*table))


def add(table=(V, C), where=(ROWS,), rows=(ROWS, C), sign=1, dtype=np.int64):
    return scatter_add(numbers(*table), (sign * ids(*where)).astype(dtype), numbers(*rows))


def relative_backward(dy=(4, 2, 3), table=(V, 4)):
    return relative_bias_backward(numbers(*dy), ids(2, 3), numbers(*table))


def adam(data=(ROWS, C), grad=(ROWS, C), m=(ROWS, C), v=(ROWS, C), scale=()):
    arrays = [numbers(*shape) for shape in (data, grad, m, v)]
    return adam_update(*arrays, 0.1, (0.9, 0.98), 1e-9, 1, scale=numbers(*scale))


def adam_of_a_transposed_array():
    data, other = numbers(C, ROWS).T, numbers(ROWS, C)
    return adam_update(data, other, other, other, 0.1, (0.9, 0.98), 1e-9, 1)


class Refusal(NamedTuple):
    """A call with a wrong argument, and what it must say."""

    call: object
    arguments: dict
    error: type
    words: str


REFUSED = [
    Refusal(normalise, {"gamma": (5,)}, ValueError, "gamma must be of shape (8,), got (5,)"),
    Refusal(normalise, {"x": (ROWS, 0)}, ValueError, "x must have at least one number in its last axis"),
    Refusal(normalise_backward, {"dy": (ROWS, 5)}, ValueError, "dy must be of shape (6, 8), got (6, 5)"),
    Refusal(loss, {"targets": (2,)}, ValueError, "targets must be of shape (6,), got (2,)"),
    Refusal(loss, {"dtype": np.float32}, TypeError, "targets must be integer token ids, got an array of float32"),
    Refusal(loss, {"pad": 0.5}, TypeError, "pad must be a whole number, got 0.5"),
    Refusal(loss_backward, {"dloss": (0,)}, ValueError, "dloss must be of shape (), got (0,)"),
    Refusal(weights, {"allowed": (ROWS, 2)}, ValueError, "allowed must be broadcastable to the scores (6, 5)"),
    Refusal(weights, {"dtype": np.float32}, TypeError, "allowed must be boolean with True = may attend"),
    Refusal(drop, {"rng": 7}, TypeError, "rng must be a numpy.random.Generator or None, got int"),
    Refusal(embed_backward, {"table": (V, 7)}, ValueError, "dy must be of shape (2, 3, 7), got (2, 3, 8)"),
    Refusal(embed_backward, {"table": (1, C)}, IndexError, "ids has the token id 1, but the vocabulary has"),
    Refusal(relative_backward, {"dy": (4, 3, 2)}, ValueError, "dy must be of shape (4, 2, 3), got (4, 3, 2)"),
    Refusal(add, {"rows": (2, C)}, ValueError, "rows must be of shape (6, 8), got (2, 8)"),
    Refusal(add, {"sign": -1}, IndexError, "ids has the token id -1, but the vocabulary has the ids 0 to 4"),
    Refusal(add, {"dtype": bool}, TypeError, "ids must be integer token ids, got an array of bool"),
    Refusal(add, {"table": (V,)}, ValueError, "table must be of shape (V, C), got (5,)"),
    Refusal(adam, {"grad": (ROWS, 2)}, ValueError, "grad must be of shape (6, 8), got (6, 2)"),
    Refusal(adam, {"scale": (0,)}, ValueError, "scale must be of shape (), got (0,)"),
    Refusal(adam_of_a_transposed_array, {}, ValueError, "data must be contiguous to be changed in place"),
    # these check nothing themselves: their kernels refuse two shapes, and the plain formula speaks for both backends
    Refusal(drop_backward, {"dy": (ROWS, 5)}, ValueError, "operands could not be broadcast together"),
    Refusal(lambda: relu_backward(numbers(2, 3), numbers(2, 4)), {}, ValueError, "operands could not be broadcast"),
    Refusal(lambda: softmax_backward(numbers(2, 3), numbers(2, 4)), {}, ValueError, "operands could not be broadcast"),
]  # fmt: skip
RIGHT = [
    normalise,
    normalise_backward,
    loss,
    loss_backward,
    weights,
    drop,
    drop_backward,
    embed_backward,
    add,
    relative_backward,
    adam,
    lambda: relu_backward(numbers(2, 3), numbers(2, 3)),
    lambda: softmax_backward(numbers(2, 3), numbers(2, 3)),
]


@pytest.fixture
def launched(monkeypatch):
    """The names of the kernels that are launched: a kernel that notes its name stands for each."""
    names = []
    monkeypatch.setattr(launch, "_kernel", lambda name, dtype: lambda grid, block, args: names.append(name))
    return names


def said(refusal, backend):
    """The message with which a call is refused."""
    with use_backend(BACKENDS[backend]), pytest.raises(refusal.error) as caught:
        refusal.call(**refusal.arguments)
    return str(caught.value)


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: f"{refusal.call.__name__} {refusal.arguments}")
def test_wrong_arguments_are_refused_in_the_same_words_and_launch_nothing(refusal, launched):
    expected = said(refusal, "numpy")
    assert refusal.words in expected
    assert said(refusal, "strict") == expected
    assert said(refusal, "cupy") == expected
    assert launched == []


def test_right_arguments_launch_every_kernel_on_cupy_alone(launched):
    for backend in BACKENDS:
        assert launched == []
        with use_backend(BACKENDS[backend]), np.errstate(all="ignore"):  # nothing has filled the results
            for call in RIGHT:
                call()
    assert set(launched) == set(kernels_in(launch.source()))
