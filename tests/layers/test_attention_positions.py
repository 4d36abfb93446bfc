"""Positions inside attention: what the layers hand to attention is the function's, for any run of positions.

What they remember of the last call must never be taken for the answer to another.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from minitransformer.functional import (
    alibi_bias,
    relative_bias,
    relative_buckets,
    rotary_tables,
    rotate,
    rotate_backward,
)
from minitransformer.layers import AlibiPositions, RelativePositions, RotaryPositions
from minitransformer.training.parallel.threads import replica
from tests.helpers import device, host, random_array, randomize, same

B, H, T, S, D, MAX_LEN, START = 2, 3, 4, 9, 6, 11, 5
BUCKETS = {"num_buckets": 8, "max_distance": 6}
F64 = {"dtype": np.float64}
BIASES = {
    "alibi": lambda: AlibiPositions(H, **F64),
    "relative": lambda: randomize(RelativePositions(H, **BUCKETS, **F64)),
    "relative, causal": lambda: randomize(RelativePositions(H, **BUCKETS, bidirectional=False, **F64)),
}
every_bias = pytest.mark.parametrize("name", BIASES)


def rotary(**options):
    return RotaryPositions(D, MAX_LEN, **{**F64, **options})


def example(length=T, dtype=np.float64):
    """Queries or keys (B, H, length, D)."""
    return random_array(np.random.default_rng(66), B, H, length, D, dtype=dtype)


@pytest.mark.parametrize("start", [0, START])
def test_rotary_positions_rotate_by_the_tables_of_their_positions(start):
    positions, x = rotary(), example()
    tables = [device(table[start : start + T]) for table in rotary_tables(MAX_LEN, D, **F64)]
    assert same(positions.rotate(x, start), rotate(x, *tables)[0])
    assert same(positions.rotate_backward(x, start), rotate_backward(x, tables))


def test_rotary_positions_end_where_their_table_ends():
    positions = rotary()
    assert positions.rotate(example(MAX_LEN)).shape == (B, H, MAX_LEN, D)
    with pytest.raises(ValueError, match="12 tokens long, but there are only 11 positions"):
        positions.rotate(example(), MAX_LEN - T + 1)
    with pytest.raises(ValueError, match="starts at position 0 or later, got start = -1"):
        positions.rotate(example(), -1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("start", [0, START])
def test_relative_positions_look_up_their_table(start, bidirectional):
    positions = randomize(RelativePositions(H, **BUCKETS, bidirectional=bidirectional, **F64))
    buckets = relative_buckets(T, S, **BUCKETS, bidirectional=bidirectional, start=start)
    assert same(positions.bias(T, S, start), relative_bias(positions.table.data, buckets)[0])


@pytest.mark.parametrize("start", [0, START])
def test_alibi_positions_give_the_bias_of_the_function_once_for_all_layers_of_a_step(start):
    positions = AlibiPositions(H, **F64)
    bias = positions.bias(T, S, start)
    assert same(bias, alibi_bias(H, T, S, start, np.float64))
    assert positions.bias(T, S, start) is bias


@every_bias
def test_later_queries_get_their_rows_of_the_whole(name):
    positions = BIASES[name]()
    whole = positions.bias(S, S)
    for start in range(S - T + 1):
        assert same(positions.bias(T, S, start), whole[:, start : start + T])


@every_bias
def test_a_remembered_bias_is_not_used_for_another_call(name):
    positions = BIASES[name]()
    for asked in [(T, S, 0), (T, S, 0), (T, S, START), (T + 1, S, START), (T, S + 1, START), (T, S, START)]:
        assert same(positions.bias(*asked), BIASES[name]().bias(*asked))


@pytest.mark.host_only  # a GPU is fed by one thread
@every_bias
def test_threads_that_share_positions_get_their_own_bias(name):
    positions, lengths = BIASES[name](), range(1, 9)
    expected = {length: BIASES[name]().bias(length, length) for length in lengths}

    def ask(length):
        return all(np.array_equal(positions.bias(length, length), expected[length]) for _ in range(40))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, lengths))


def test_a_replica_shares_the_table_and_has_its_own_gradient():
    positions = BIASES["relative"]()
    positions.bias(T, S)
    other = replica(positions)
    other.bias_backward(random_array(np.random.default_rng(67), H, T, S), T, S)
    positions.table.data += 1.0
    assert same(other.bias(T, S), positions.bias(T, S))
    assert (host(positions.table.grad) == 0).all()
    assert (host(other.table.grad) != 0).any()


def test_the_table_starts_small_is_drawn_from_the_generator_and_can_be_saved():
    draw = [RelativePositions(12, rng=np.random.default_rng(seed), **F64).state_dict() for seed in (1, 1, 2)]
    assert [list(state) for state in draw] == [["table"]] * 3
    assert draw[0]["table"].shape == (32, 12)
    assert 0.017 < draw[0]["table"].std() < 0.023
    assert np.array_equal(draw[0]["table"], draw[1]["table"])
    assert not np.array_equal(draw[0]["table"], draw[2]["table"])


def test_buckets_are_those_of_t5_unless_told_otherwise():
    positions = randomize(RelativePositions(H, **F64))
    buckets = relative_buckets(1, 400, num_buckets=32, max_distance=128, bidirectional=True, start=200)
    assert same(positions.bias(1, 400, 200), relative_bias(positions.table.data, buckets)[0])
