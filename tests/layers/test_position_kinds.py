"""Learnt positions, positions that start later, and the six kinds of positions by name."""

import numpy as np
import pytest

from minitransformer.functional import sinusoidal_positions
from minitransformer.layers import (
    AlibiPositions,
    LearnedPositions,
    PositionalEncoding,
    RelativePositions,
    RotaryPositions,
)
from minitransformer.models import TransformerConfig
from minitransformer.models.since_2017.build import LaterBuilder
from tests.helpers import host, random_array, randomize, relative_error, same

B, T, C, MAX_LEN, START = 2, 4, 6, 9, 3
KINDS = ("sinusoidal", "learned", "relative", "rope", "alibi", "none")
F64 = {"dtype": np.float64}
ADDED = {
    "sinusoidal": lambda: PositionalEncoding(MAX_LEN, C, **F64),
    "learned": lambda: randomize(LearnedPositions(MAX_LEN, C, **F64)),
}
each_added = pytest.mark.parametrize("kind", ADDED)


def example(length=T, seed=71):
    return random_array(np.random.default_rng(seed), B, length, C)


@pytest.mark.parametrize("start", [0, START])
def test_each_token_gets_the_learnt_vector_of_its_position(start):
    layer, x = ADDED["learned"](), example()
    P, values = host(layer.P.data), host(x)
    expected = [[[values[b, t, c] + P[start + t, c] for c in range(C)] for t in range(T)] for b in range(B)]
    assert relative_error(layer.forward(x, start=start)[0], expected) <= 1e-15


def test_each_token_gets_the_sinusoids_of_its_position_and_nothing_is_learnt():
    layer, x = ADDED["sinusoidal"](), example()
    assert relative_error(layer(x), host(x) + sinusoidal_positions(MAX_LEN, C, np.float64)[:T]) <= 1e-12
    assert layer.parameters() == []


@each_added
def test_later_tokens_get_the_positions_they_have_in_the_whole(kind):
    layer, x = ADDED[kind](), example(MAX_LEN)
    whole = layer(x)
    for start in range(MAX_LEN - T + 1):
        assert same(layer(x[:, start : start + T], start=start), whole[:, start : start + T])


@each_added
def test_positions_end_where_the_table_ends_and_start_at_zero(kind):
    layer = ADDED[kind]()
    assert layer(example(MAX_LEN)).shape == (B, MAX_LEN, C)
    assert layer(example(), start=MAX_LEN - T).shape == (B, T, C)
    with pytest.raises(ValueError, match="10 tokens long, but there are only 9 positions"):
        layer(example(), start=MAX_LEN - T + 1)
    with pytest.raises(ValueError, match="starts at position 0 or later, got start = -2"):
        layer(example(), start=-2)


def config(kind, **sizes):
    return TransformerConfig(11, **{"d_model": C, "num_heads": 3, "max_len": MAX_LEN, "positions": kind, **sizes})


def input_positions(kind):
    return LaterBuilder(config(kind), np.random.default_rng(75), np.float64).input_positions(std=0.02)


def attention_positions(kind, bidirectional=True):
    build = LaterBuilder(config(kind), np.random.default_rng(76), np.float64)
    build.bidirectional = bidirectional
    return build.attention_positions()


def test_each_kind_acts_on_the_input_or_inside_attention_or_nowhere():
    inputs = [PositionalEncoding, LearnedPositions, None, None, None, None]
    inside = [None, None, RelativePositions, RotaryPositions, AlibiPositions, None]
    for kind, added, attention in zip(KINDS, inputs, inside, strict=True):
        for made, expected in ((input_positions(kind), added), (attention_positions(kind), attention)):
            assert made is None if expected is None else type(made) is expected


def test_the_size_of_learnt_positions_is_passed_on():
    sizes = {"max_len": 64, "d_model": 48}
    made = LaterBuilder(config("learned", **sizes), np.random.default_rng(77), np.float64).input_positions(std=1.0)
    assert 0.95 < host(made.P.data).std() < 1.05


def test_relative_positions_are_told_whether_queries_see_later_keys():
    behind = {kind: host(attention_positions("relative", kind).bias(1, 4)) for kind in (True, False)}
    assert len(np.unique(behind[True])) == behind[True].size
    assert len(np.unique(behind[False])) == 3, "one number for each head"
