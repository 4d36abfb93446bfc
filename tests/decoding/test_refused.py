"""What decoding refuses, and what is as it was afterwards."""

import numpy as np
import pytest

from minitransformer.config import Windowed
from minitransformer.core import Layer
from minitransformer.decoding import Greedy, Sampling, beam_search, generate_from, greedy_decode, log_softmax
from minitransformer.decoding.faster.gpt import GPTState
from minitransformer.decoding.rereading import RereadingState
from minitransformer.models import GPT, TransformerConfig
from tests.helpers import no_ids

pytestmark = pytest.mark.host_only
SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 3, "max_len": 24, "dropout": 0.0}


def gpt(**changes):
    return GPT(TransformerConfig(**{**SIZES, **changes}), seed=1)


class Writes(Layer):
    """A language model with the same logits everywhere."""

    def __init__(self, logits):
        self.logits = np.array(logits, np.float32)

    def forward(self, ids, rng=None):
        return np.broadcast_to(self.logits, (*ids.shape, len(self.logits))).copy(), None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_are_refused_instead_of_writing_token_0(bad):
    logits = [bad] * 4 if bad < 0 else [0.0, 1.0, bad, 2.0]
    with pytest.raises(ArithmeticError, match=f"1 of 1 rows of logits are not finite: their maximum is {bad}"):
        greedy_decode(Writes(logits), np.array([[3, 1]]), 5)


@pytest.mark.parametrize("choose", [Greedy(), Sampling(np.random.default_rng(0), top_k=2)], ids=["greedy", "sampling"])
def test_a_model_with_one_nan_weight_says_so_at_the_first_token(choose):
    model = gpt()
    model.parameters()[0].data[5] = np.nan
    with pytest.raises(ArithmeticError, match="are not finite"):
        generate_from(GPTState(model, no_ids(1), 9), np.array([[3, 4, 5]]), 4, choose)
    with pytest.raises(ArithmeticError, match="are not finite"):
        beam_search(GPTState(model, no_ids(1), 9), 1, 4, bos=3)


def test_a_token_that_is_forbidden_by_minus_infinity_is_allowed_to_be():
    log_p = log_softmax(np.array([[0.0, -np.inf, 1.0]]))
    assert log_p[0].tolist() == pytest.approx([-np.log1p(np.e), -np.inf, 1 - np.log1p(np.e)])


def test_the_smallest_temperature_there_is_chooses_the_most_likely_token():
    p = Sampling(np.random.default_rng(0), temperature=5e-324).probabilities(np.log([[0.2, 0.5, 0.3]]))
    assert p.tolist() == [[0.0, 1.0, 0.0]]


def test_a_refused_cut_back_leaves_all_layers_as_they_were():
    rng = np.random.default_rng(2)
    model = gpt(attention=Windowed(3, full_layers=(0,)))  # the first layer could, the others cannot
    ids, more = rng.integers(3, 11, (2, 7)), rng.integers(3, 11, (2, 1))
    state, untouched = (GPTState(model, no_ids(2), 20) for _ in range(2))
    for each in (state, untouched):
        each.extend(ids)
    with pytest.raises(ValueError, match="cannot be cut back"):
        state.cut_back(2)
    assert [kept.length for kept in state.kv_caches] == [7, 7, 7]
    assert np.array_equal(state.extend(more), untouched.extend(more))


@pytest.mark.parametrize(
    "make", [lambda model: GPTState(model, no_ids(2), 20), lambda model: RereadingState(model, no_ids(2))]
)
@pytest.mark.parametrize("count", [8, -1])
def test_no_more_tokens_are_forgotten_than_were_read(make, count):
    rng = np.random.default_rng(2)
    ids, more = rng.integers(3, 11, (2, 7)), rng.integers(3, 11, (2, 1))
    state, untouched = make(gpt()), make(gpt())
    for each in (state, untouched):
        each.extend(ids)
    with pytest.raises(ValueError, match=f"of 7 tokens the last {count} cannot be forgotten"):
        state.cut_back(count)
    assert np.array_equal(state.extend(more), untouched.extend(more))


def test_a_token_that_rereading_refuses_is_not_kept():
    rng = np.random.default_rng(2)
    ids, more = rng.integers(3, 11, (2, 7)), rng.integers(3, 11, (2, 1))
    state, untouched = (RereadingState(gpt(), no_ids(2)) for _ in range(2))
    for each in (state, untouched):
        each.extend(ids)
    with pytest.raises(IndexError):
        state.extend(np.array([[3], [99]]))
    assert np.array_equal(state.extend(more), untouched.extend(more))
