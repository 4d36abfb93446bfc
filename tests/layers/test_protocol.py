"""What every layer must keep: exact gradients, uses that add up, the dtype of its data, and inputs left as they were.

Each case is (make, call, inputs): make(dtype) builds the layer, call(layer, *inputs) is its forward with masks and
dropout on, and inputs are the shapes of the arrays that have a gradient.
"""

import numpy as np
import pytest

from minitransformer import layers as L
from minitransformer.core import Parameter
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.generators import make_generator
from tests.helpers import device, host, random_array, randomize, relative_error, same
from tests.layers.test_encoder import config

B, T, S, H, C, F, V = 2, 4, 5, 3, 12, 7, 11
TARGET = np.array([[5, 3, 8, 0], [7, 5, 5, 5]])  # 0 is padding, 5 comes several times
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 4, 7, 0]])
EVERY_DROPOUT = {"dropout": 0.2, "attention_dropout": 0.3, "ffn_dropout": 0.4}
X, MEMORY = (B, T, C), (B, S, C)


def masks():
    """For self-attention and for the memory."""
    return causal_mask(T) & padding_mask(device(TARGET)), padding_mask(device(SOURCE))


def plain(layer, x):
    return layer.forward(x, rng=make_generator(40))


def attend(layer, x):
    return layer.forward(x, masks()[0], rng=make_generator(41))


def attend_to_memory(layer, x, memory):
    return layer.forward(x, memory, masks()[1], rng=make_generator(42))


def decode(layer, x, memory):
    return layer.forward(x, memory, *masks(), rng=make_generator(43))


def look_up(layer):
    return layer.forward(TARGET, rng=make_generator(44))


def table(dtype):
    return Parameter(np.zeros((V, C), dtype))


def positions(dtype):
    return L.PositionalEncoding(9, C, dtype=dtype)


CASES = {
    "Linear": (lambda dtype: L.Linear(C, F, blocks=2, dtype=dtype), plain, [X]),
    "Linear without bias": (lambda dtype: L.Linear(C, F, bias=False, dtype=dtype), plain, [X]),
    "LayerNorm": (lambda dtype: L.LayerNorm(C, dtype=dtype), plain, [X]),
    "Dropout": (lambda dtype: L.Dropout(0.4), plain, [X]),
    "PositionalEncoding": (positions, plain, [X]),
    "Embedding": (lambda dtype: L.Embedding(table(dtype)), look_up, []),
    "InputEmbedding": (lambda dtype: L.InputEmbedding(table(dtype), positions(dtype), 0.4), look_up, []),
    "OutputProjection": (lambda dtype: L.OutputProjection(table(dtype)), plain, [X]),
    "FeedForward": (lambda dtype: L.FeedForward(C, F, dropout_rate=0.4, dtype=dtype), plain, [X]),
    "SelfAttention": (lambda dtype: L.SelfAttention(C, H, dropout_rate=0.3, dtype=dtype), attend, [X]),
    "CrossAttention": (
        lambda dtype: L.CrossAttention(C, H, dropout_rate=0.3, dtype=dtype),
        attend_to_memory,
        [X, MEMORY],
    ),
}
for norm in ("post", "pre"):
    switches = config(norm=norm, **EVERY_DROPOUT)
    for kind, call, inputs in (
        (L.EncoderLayer, attend, [X]),
        (L.Encoder, attend, [X]),
        (L.DecoderLayer, decode, [X, MEMORY]),
        (L.Decoder, decode, [X, MEMORY]),
    ):
        CASES[f"{kind.__name__} {norm}"] = (
            lambda dtype, kind=kind, switches=switches: kind(switches, dtype=dtype),
            call,
            inputs,
        )
    CASES[f"Residual {norm}"] = (
        lambda dtype, norm=norm: L.Residual(
            L.CrossAttention(C, H, dtype=dtype), C, dropout_rate=0.4, norm=norm, dtype=dtype
        ),
        attend_to_memory,
        [X, MEMORY],
    )

every_layer = pytest.mark.parametrize("name", CASES)


def draw(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    return [random_array(rng, *shape, dtype=dtype) for shape in shapes]


def forward_and_backward(layer, call, inputs, seed=50):
    """Use the layer once with a random upstream gradient -> y, dy and the gradients of the inputs."""
    y, cache = call(layer, *inputs)
    (dy,) = draw([y.shape], y.dtype, seed)
    gradients = layer.backward(dy, cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return y, dy, [gradient for gradient in gradients if gradient is not None]


def gradients_of(layer):
    return [parameter.grad for parameter in layer.parameters()]


@every_layer
def test_every_gradient_equals_a_complex_step_along_a_random_direction(name):
    make, call, shapes = CASES[name]
    layer, twin = randomize(make(np.float64)), randomize(make(np.complex128))
    inputs = draw(shapes, np.float64, seed=51)
    _, dy, dinputs = forward_and_backward(layer, call, inputs)
    complex_inputs = [x.astype(np.complex128) for x in inputs]
    tensors = complex_inputs + [parameter.data for parameter in twin.parameters()]
    rng, h = np.random.default_rng(52), 1e-30
    for tensor, gradient in zip(tensors, dinputs + gradients_of(layer), strict=True):
        direction = device(rng.standard_normal(tensor.shape))
        tensor += 1j * h * direction
        slope = host((dy * call(twin, *complex_inputs)[0]).sum()).imag / h
        tensor[...] = tensor.real
        assert relative_error((gradient * direction).sum(), slope) <= 1e-12


@every_layer
def test_a_layer_used_twice_gets_the_sum_of_both_gradients(name):
    make, call, shapes = CASES[name]
    once, again, twice = (randomize(make(np.float64)) for _ in range(3))
    first, second = draw(shapes, np.float64, seed=53), draw(shapes, np.float64, seed=54)
    _, dy_first, _ = forward_and_backward(once, call, first, seed=55)
    _, dy_second, _ = forward_and_backward(again, call, second, seed=56)
    (_, cache_first), (_, cache_second) = call(twice, *first), call(twice, *second)  # both uses before any backward
    twice.backward(dy_first, cache_first)
    twice.backward(dy_second, cache_second)
    for got, a, b in zip(gradients_of(twice), gradients_of(once), gradients_of(again), strict=True):
        assert np.abs(host(a)).max() > 0
        assert same(got, a + b)


@every_layer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_and_all_gradients_keep_the_dtype_and_no_input_is_written(name, dtype):
    make, call, shapes = CASES[name]
    layer = randomize(make(dtype))
    inputs = draw(shapes, dtype, seed=57)  # these and the upstream gradient are read-only
    y, _, dinputs = forward_and_backward(layer, call, inputs)
    assert {array.dtype for array in (y, *dinputs, *gradients_of(layer))} == {np.dtype(dtype)}
    assert [gradient.shape for gradient in dinputs] == shapes


@pytest.mark.parametrize("name", [name for name, (_, _, shapes) in CASES.items() if shapes])
def test_an_output_depends_on_its_own_row_of_the_batch_alone(name):
    make, call, shapes = CASES[name]
    layer, inputs = randomize(make(np.float64)), draw(shapes, np.float64, seed=58)
    others = [x.copy() for x in inputs]
    for other in others:
        other[1:] += 1.0
    y, changed = call(layer, *inputs)[0], call(layer, *others)[0]
    assert same(changed[0], y[0])
    assert not same(changed[1], y[1])


@every_layer
def test_zero_grad_forgets_every_gradient(name):
    make, call, shapes = CASES[name]
    layer = randomize(make(np.float64))
    forward_and_backward(layer, call, draw(shapes, np.float64, seed=59))
    layer.zero_grad()
    assert all((gradient == 0).all() for gradient in gradients_of(layer))
