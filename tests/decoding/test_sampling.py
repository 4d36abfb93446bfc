"""The choice of a token against naive loops written from the definitions, and draws against their probabilities."""

import math

import numpy as np
import pytest

from minitransformer.decoding import Greedy, Sampling, forbid_repeats, log_softmax
from tests.decoding.scripted import naive_log_softmax
from tests.helpers import relative_error

pytestmark = pytest.mark.host_only  # a token is chosen on the host, with NumPy alone
V = 7


def example(B=5, V=V, seed=0, dtype=np.float64):
    """log p (B, V) of random logits, with some equal ones, that nobody may write to."""
    log_p = log_softmax(np.random.default_rng(seed).normal(0, 1.5, (B, V)).round(1)).astype(dtype)
    log_p.setflags(write=False)
    return log_p


def naive_probabilities(log_p, temperature, top_k, top_p):
    """What one row is drawn from: sharpen, keep the k likeliest, keep the fewest that make up p, normalize."""
    p = [math.exp(x / temperature) for x in log_p]
    p = [x / math.fsum(p) for x in p]
    likeliest = sorted(range(len(p)), key=lambda i: (-p[i], i))[:top_k]
    left = math.fsum(p[i] for i in likeliest)
    kept = []
    for i in likeliest:
        kept.append(i)
        if top_p is not None and math.fsum(p[j] for j in kept) / left >= top_p:
            break
    total = math.fsum(p[j] for j in kept)
    return [p[i] / total if i in kept else 0.0 for i in range(len(p))]


def test_log_softmax_equals_its_definition():
    logits = np.random.default_rng(1).normal(0, 3, (2, 3, 5))
    logits[0, 1, 2] = -np.inf
    logits.setflags(write=False)
    expected = np.array([[naive_log_softmax(row) for row in rows] for rows in logits.tolist()])
    got = log_softmax(logits)
    assert got[0, 1, 2] == -np.inf
    finite = np.isfinite(expected)
    assert relative_error(got[finite], expected[finite]) <= 1e-14


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_softmax_of_huge_logits_overflows_nowhere_and_keeps_the_dtype(dtype):
    got = log_softmax(np.array([[1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype))
    assert got.dtype == dtype
    expected = np.array([[-math.log(2), -math.log(2), -2e4], [-math.log(3)] * 3])
    assert relative_error(got[:, :2], expected[:, :2]) <= 1e-6
    assert relative_error(got[0, 2:], expected[0, 2:]) <= 1e-4


def test_greedy_takes_the_most_likely_token_and_the_first_of_equal_ones():
    assert Greedy()(np.array([[-3.0, -1.0, -2.0], [-1.0, -5.0, -1.0], [-4.0, -2.0, -2.0]])).tolist() == [1, 0, 1]


@pytest.mark.parametrize("temperature", [1.0, 0.4, 3.0])
@pytest.mark.parametrize("top_k", [None, 1, 4, 50])
@pytest.mark.parametrize("top_p", [None, 1e-9, 0.65, 0.999])
def test_probabilities_equal_the_naive_ones(temperature, top_k, top_p):
    log_p = example()
    got = Sampling(None, temperature, top_k, top_p).probabilities(log_p)
    expected = np.array([naive_probabilities(row, temperature, top_k, top_p) for row in log_p.tolist()])
    assert ((got > 0) == (expected > 0)).all()
    assert relative_error(got, expected) <= 1e-13


@pytest.mark.parametrize(("top_p", "kept"), [(0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.89, 3), (0.91, 4)])
def test_top_p_keeps_the_token_that_crosses_p_and_none_after_it(top_p, kept):
    p = Sampling(None, top_p=top_p).probabilities(np.log(np.array([[0.15, 0.5, 0.1, 0.25]])))
    assert (p > 0).sum() == kept


def test_plain_sampling_uses_the_models_probabilities_and_keeps_zeros():
    log_p = example().copy()
    log_p[1, 3] = log_p[2, 0] = log_p[2, V - 1] = -np.inf
    for sampling in (Sampling(None), Sampling(None, top_k=V, top_p=1.0), Sampling(None, 1.0, None, 1.0)):
        p = sampling.probabilities(log_p)
        assert p[1, 3] == p[2, 0] == p[2, V - 1] == 0.0
        expected = np.exp(log_p) / np.exp(log_p).sum(axis=-1, keepdims=True)
        assert relative_error(p, expected) <= 1e-14


@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 0.5}, {"temperature": 2.0, "top_k": 4}, {"top_p": 0.8}, {"top_k": 5, "top_p": 0.7}],
)
def test_frequencies_of_20000_draws_are_the_probabilities(options):
    draws = 20_000
    log_p = np.tile(example(1, seed=3), (draws, 1))
    ids = Sampling(np.random.default_rng(4), **options)(log_p)
    count = np.bincount(ids, minlength=V)
    options = {"temperature": 1.0, "top_k": None, "top_p": None, **options}
    for got, p in zip(count, naive_probabilities(log_p[0].tolist(), **options), strict=True):
        assert abs(got - draws * p) <= 5 * math.sqrt(draws * p * (1 - p)), f"{got} draws of probability {p}"


class Extreme:
    """Stands for a generator: always the same number."""

    def __init__(self, number):
        self.number = number

    def random(self, size):
        return np.full(size, self.number)


@pytest.mark.parametrize("number", [0.0, 0.5, 1 - 2**-53])
def test_no_token_of_probability_0_is_ever_drawn_not_even_by_rounding(number):
    log_p = log_softmax(np.random.default_rng(5).normal(0, 2, (2000, 23)))
    log_p[:, [0, 1, 9, 21, 22]] = -np.inf  # at both ends and between
    for sampling in (Sampling(Extreme(number)), Sampling(Extreme(number), 0.7, 9, 0.9)):
        ids = sampling(log_p)
        assert (sampling.probabilities(log_p)[np.arange(2000), ids] > 0).all()


def test_number_drawn_finds_the_token_whose_share_it_falls_into():
    log_p = np.log(np.array([[0.25, 0.125, 0.5, 0.125]]))
    for number, token in [(0.0, 0), (0.24, 0), (0.26, 1), (0.37, 1), (0.38, 2), (0.87, 2), (0.88, 3), (0.999, 3)]:
        assert Sampling(Extreme(number))(log_p).tolist() == [token]


@pytest.mark.parametrize(("dtype", "temperature"), [(np.float32, 1e-30), (np.float64, 1e-300)])
def test_towards_temperature_0_it_is_greedy(dtype, temperature):
    log_p = log_softmax(np.random.default_rng(6).permutation(60).reshape(4, 15).astype(dtype))
    assert np.array_equal(Sampling(np.random.default_rng(7), temperature)(log_p), Greedy()(log_p))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"temperature": 0.0}, "temperature must be greater than 0 and finite, got 0.0"),
        ({"temperature": math.inf}, "temperature must be greater than 0 and finite, got inf"),
        ({"temperature": math.nan}, "temperature must be greater than 0 and finite, got nan"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 0.0}, "top_p must be greater than 0 and at most 1, got 0.0"),
        ({"top_p": 1.1}, "top_p must be greater than 0 and at most 1, got 1.1"),
        ({"top_p": math.nan}, "top_p must be greater than 0 and at most 1, got nan"),
    ],
)
def test_values_out_of_range_are_refused(options, complaint):
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        Sampling(np.random.default_rng(0), **options)


def naive_repeats(said, token, length):
    """Whether `token` would end a run of `length` tokens that is in `said` already."""
    run = [*said, token][-length:]
    return len(run) == length and any(said[i : i + length] == run for i in range(len(said) - length + 1))


@pytest.mark.parametrize("length", [1, 2, 3, 6])
@pytest.mark.parametrize("T", [1, 3, 25])
def test_forbid_repeats_equals_the_definition(length, T):
    ids, log_p = np.random.default_rng([length, T]).integers(0, 4, (6, T)), example(6)
    got = forbid_repeats(log_p, ids, length)
    expected = log_p.copy()
    for row, said in enumerate(ids.tolist()):
        for token in range(V):
            if naive_repeats(said, token, length):
                expected[row, token] = -np.inf
    assert np.array_equal(got, expected)
    if length <= 2 and T == 25:
        assert np.isneginf(got).any(axis=-1).all(), "the example must show something"


def test_tokens_whose_probabilities_sum_to_exactly_top_p_are_enough():
    log_p = np.zeros((1, 4)) - math.log(4)
    for top_p, kept in ((0.25, 1), (0.5, 2), (1.0, 4)):
        assert (Sampling(None, top_p=top_p).probabilities(log_p) > 0).sum() == kept


def test_a_number_drawn_at_the_end_of_a_share_belongs_to_the_next_token():
    log_p = np.log(np.array([[0.25, 0.25, 0.5]]))
    assert [Sampling(Extreme(number))(log_p).tolist() for number in (0.25, 0.5)] == [[1], [2]]
