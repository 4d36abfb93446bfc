"""What a caller leaves out is nothing: no mask, no dropout, no state, no earlier token, and the paper's own choices."""

import inspect

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.layers import (
    GRU,
    LSTM,
    ActivatedConv1d,
    Conv1d,
    CrossAttention,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    InputEmbedding,
    LearnedPositions,
    Linear,
    MemoryAttention,
    PositionalEncoding,
    Residual,
    SelfAttention,
)
from minitransformer.layers.positions import make_attention_positions, make_input_positions
from minitransformer.layers.stack import LayerStack
from minitransformer.models import TransformerConfig
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, C, H, V = 2, 4, 5, 12, 3, 11
F64 = {"dtype": np.float64}


def config(rate=0.0, **fields):
    sizes = {"vocab_size": V, "d_model": C, "num_heads": H, "d_ff": 7, "num_layers": 2, "max_len": 9}
    return TransformerConfig(**sizes, dropout=rate, attention_dropout=rate, ffn_dropout=rate, **fields)


def x_and_memory():
    rng = np.random.default_rng(4)
    return random_array(rng, B, T, C), random_array(rng, B, S, C)


# the layer for a dropout rate, and how many of x and memory it takes
LAYERS = {
    "SelfAttention": (lambda rate: SelfAttention(C, H, dropout_rate=rate, **F64), 1),
    "CrossAttention": (lambda rate: CrossAttention(C, H, dropout_rate=rate, **F64), 2),
    "MemoryAttention": (lambda rate: MemoryAttention("additive", C, **F64), 2),
    "FeedForward": (lambda rate: FeedForward(C, 7, dropout_rate=rate, **F64), 1),
    "Residual": (lambda rate: Residual(Linear(C, C, **F64), C, dropout_rate=rate, **F64), 1),
    "EncoderLayer": (lambda rate: EncoderLayer(config(rate), **F64), 1),
    "Encoder": (lambda rate: Encoder(config(rate), **F64), 1),
    "DecoderLayer": (lambda rate: DecoderLayer(config(rate), **F64), 2),
    "Decoder": (lambda rate: Decoder(config(rate), **F64), 2),
    "LayerStack": (lambda rate: LayerStack(config(rate), EncoderLayer, bidirectional=True, **F64), 1),
    "Conv1d": (lambda rate: Conv1d(C, C, 3, **F64), 1),
    "ActivatedConv1d": (lambda rate: ActivatedConv1d(C, 3, **F64), 1),
    "LSTM": (lambda rate: LSTM(C, C, num_layers=2, dropout_rate=rate, **F64), 1),
    "GRU": (lambda rate: GRU(C, C, num_layers=2, dropout_rate=rate, **F64), 1),
}
EVERYTHING = {"allowed": (T, T), "memory_allowed": (T, S), "mask": (B, T)}  # masks that hide nothing
every_layer = pytest.mark.parametrize("name", LAYERS)


def output(y):
    """The array of an output, which has a state besides if the layer is recurrent."""
    return y[0] if isinstance(y, tuple) else y


@every_layer
def test_no_mask_and_no_generator_are_needed(name):
    make, count = LAYERS[name]
    inputs = x_and_memory()[:count]
    y = output(randomize(make(0.4))(*inputs))
    sound = randomize(make(0.0))  # nothing to drop
    shapes = {**EVERYTHING, **({"allowed": (T, S)} if name in ("CrossAttention", "MemoryAttention") else {})}
    taken = inspect.signature(sound.forward).parameters.keys() & shapes.keys()
    assert (
        relative_error(y, output(sound(*inputs, **{mask: device(np.ones(shapes[mask], bool)) for mask in taken})))
        <= 1e-14
    )


def test_an_embedding_needs_no_generator_and_starts_at_the_first_position():
    E = Parameter(np.random.default_rng(24).standard_normal((V, C)))
    ids = np.array([[3, 7, 3, 0], [10, 3, 7, 7]])
    for positions in (PositionalEncoding(9, C, **F64), randomize(LearnedPositions(9, C, **F64)), None):
        y = InputEmbedding(E, positions, 0.4)(ids)
        assert same(y, InputEmbedding(E, positions, 0.0)(ids, None, 0))


@pytest.mark.parametrize("make", [LSTM, GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_recurrent_stack_starts_from_zeros_and_its_last_state_needs_no_gradient(make, bidirectional):
    layer = randomize(make(C, 3, num_layers=2, bidirectional=bidirectional, **F64))
    x, _ = x_and_memory()
    (y, last), cache = layer.forward(x)
    zeros = tuple(device(np.zeros(host(array).shape)) for array in last)
    (y_from_zeros, _), again = layer.forward(x, zeros, device(np.ones((B, T), bool)))
    assert same(y, y_from_zeros)
    dy = random_array(np.random.default_rng(5), *y.shape)
    dx, dstate = layer.backward(dy, cache)
    dx_from_zeros, dstate_from_zeros = layer.backward(dy, again, zeros)
    assert relative_error(dx, dx_from_zeros) <= 1e-14
    for a, b in zip(dstate, dstate_from_zeros, strict=True):
        assert relative_error(a, b) <= 1e-14


def sees_later(layer, *more):
    """Whether a change of the last token changes the output of the first."""
    x, _ = x_and_memory()
    other = np.array(host(x))
    other[:, -1] += 1.0
    return not same(layer(device(other), *more)[:, 0], layer(x, *more)[:, 0])


def test_an_encoder_reads_in_both_directions_and_a_decoder_only_back():
    tiled, (_, memory) = config(attention="tiled"), x_and_memory()
    for make in (EncoderLayer, Encoder):
        assert sees_later(randomize(make(tiled, **F64)))
    for make in (DecoderLayer, Decoder):
        assert not sees_later(randomize(make(tiled, **F64)), memory)


def test_positions_need_no_generator_and_see_later_keys():
    for made in (make_input_positions("learned", 9, C), make_attention_positions("relative", H, C // H, 9)):
        (parameter,) = made.parameters()
        assert not host(parameter.data).any()
    both, default = (
        make_attention_positions("relative", H, C // H, 9, rng=np.random.default_rng(6), **options)
        for options in ({"bidirectional": True}, {})
    )
    assert same(both.bias(T, S, 2), default.bias(T, S, 2))
