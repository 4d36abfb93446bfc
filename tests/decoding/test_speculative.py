"""Speculative decoding says what the large model would say alone: proved in fractions, by following every draw.

The product code itself runs: only the numbers are fractions, and each draw takes all outcomes, one run after another.
"""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from minitransformer.decoding import RereadingState, Sampling, SlidingState, generate_tokens
from minitransformer.decoding.faster import speculative
from minitransformer.decoding.faster.speculative import Speculation, judge
from minitransformer.layers import Linear
from tests.decoding.test_incremental import build_gpt
from tests.layers.test_attention_kinds import KINDS

pytestmark = pytest.mark.host_only  # what the models compute is compared on both in test_incremental and test_folded
V, GAMMA, LENGTH, EOS = 3, 2, 4, 2
PROMPT = np.array([[0]])
TOP_P = 0.65  # no sum of the weights below makes exactly this share
CUTS = {"none": {}, "temperature": {"temperature": 0.5}, "top-p": {"top_p": TOP_P}, "top-k": {"top_k": 2}}


@functools.cache
def weights(seed, said):
    """Three numbers from 0 to 3 in proportion to which the next token is drawn."""
    found = np.random.default_rng([seed, *said]).integers(0, 4, V).tolist()
    return found if any(found) else [1, 2, 3]


class TableState:
    """A decoding state whose probabilities are those of `weights`."""

    remaining = 100

    def __init__(self, seed):
        self.seed, self.said = seed, ()

    def extend_last(self, ids, count):
        logits = []
        for id in ids[0].tolist():
            self.said = (*self.said, id)
            logits.append([math.log(w) if w else -math.inf for w in weights(self.seed, self.said)])
        return np.array([logits[-count:]])

    def extend(self, ids):
        return self.extend_last(ids, 1)[:, 0]

    def cut_back(self, count):
        self.said = self.said[: len(self.said) - count]


class EveryDraw(Sampling):
    """Sampling in fractions. Each run takes another path through the draws, and multiplies their probabilities."""

    def __init__(self, **cut):
        super().__init__(np.random.default_rng(0), **cut)
        self.path = []  # (which outcome is taken, how many there are) of each draw
        self.known = {}

    def probabilities(self, log_p):
        key = log_p.tobytes()
        if key not in self.known:
            self.known[key] = self.fractions(log_p)
        return self.known[key]

    def fractions(self, log_p):
        rows = [[Fraction(x).limit_denominator(1000) for x in row] for row in super().probabilities(log_p).tolist()]
        assert all(sum(row) == 1 for row in rows)
        return np.array(rows)

    def draw(self, p):
        (row,) = p
        possible = [i for i, x in enumerate(row) if x > 0]
        if self.depth == len(self.path):
            self.path.append((0, len(possible)))
        i = possible[self.path[self.depth][0]]
        self.depth += 1
        self.probability *= Fraction(row[i]) / sum(row)
        return np.array([i])

    def runs(self):
        """Begin every run; after each, `probability` is that of its draws."""
        while True:
            self.depth, self.probability = 0, Fraction(1)
            yield
            while self.path and self.path[-1][0] + 1 == self.path[-1][1]:
                self.path.pop()
            if not self.path:
                return
            taken, count = self.path.pop()
            self.path.append((taken + 1, count))


def enumerated(cut, module=speculative, eos=None, length=LENGTH):
    """{text: its exact probability} with the draft."""
    found, choose = {}, EveryDraw(**cut)
    for _ in choose.runs():
        steps = module.Speculation(TableState(1), GAMMA).generate_tokens(TableState(0), PROMPT, length, choose, eos=eos)
        text = tuple(int(ids[0]) for ids, _ in steps)
        found[text] = found.get(text, 0) + choose.probability
    return found


def exact(seed, said, temperature=1.0, top_k=V, top_p=None):
    """The definition, in fractions: apply the temperature, keep the most likely tokens, normalize."""
    w = [Fraction(x) ** round(1 / temperature) for x in weights(seed, said)]
    ranked, kept = sorted(range(V), key=lambda i: (-w[i], i))[:top_k], []
    for i in ranked:
        kept.append(i)
        if top_p and sum(w[j] for j in kept) >= Fraction(top_p) * sum(w[j] for j in ranked):
            break
    return [w[i] / sum(w[j] for j in kept) if i in kept else Fraction(0) for i in range(V)]


def expected(cut, eos=None, length=LENGTH, said=(0,)):
    """{text: its exact probability} if the large model writes alone."""
    if len(said) == length + 1 or (said[1:] and said[-1] == eos):
        return {said[1:]: Fraction(1)}
    p = exact(0, said, **cut)
    return {text: p[i] * x for i in range(V) if p[i] for text, x in expected(cut, eos, length, (*said, i)).items()}


@pytest.mark.parametrize(("cut", "eos"), [*((cut, None) for cut in CUTS), ("none", EOS)])
def test_every_text_has_exactly_the_probability_that_the_large_model_gives_it(cut, eos):
    found = enumerated(CUTS[cut], eos=eos)
    assert sum(found.values()) == 1
    assert found == expected(CUTS[cut], eos)


def test_both_models_have_read_the_text_and_no_rejected_guess():
    """Any draft gives the right distribution, so the enumeration cannot see what it reads: only speed would tell."""
    choose, draft, state = EveryDraw(top_k=2), TableState(1), TableState(0)
    for _ in choose.runs():
        draft.said, state.said, written = (), (), PROMPT[0].tolist()
        for ids, _ in Speculation(draft, GAMMA).generate_tokens(state, PROMPT, LENGTH, choose, eos=None):
            assert state.said[: len(written)] == tuple(written)[: len(state.said)]
            written.append(int(ids[0]))
        assert draft.said == tuple(written)[: len(draft.said)]
        assert len(draft.said) >= LENGTH - 1


def test_a_pass_yields_as_many_tokens_as_the_formula_says():
    a = Fraction(0)
    tokens = accepted = Fraction(0)
    p, q = (np.array([Fraction(x, 10) for x in row]) for row in ((5, 3, 2), (2, 2, 6)))
    choose = EveryDraw()
    for _ in choose.runs():
        guesses = [int(choose.draw(q[None])[0]) for _ in range(GAMMA)]
        count, _ = judge(guesses, np.array([p] * (GAMMA + 1)), np.array([q] * GAMMA), choose.draw)
        tokens += (count + 1) * choose.probability
        accepted += (count > 0) * choose.probability
    a = sum(map(min, p, q))
    assert accepted == a == Fraction(6, 10)
    assert tokens == (1 - a ** (GAMMA + 1)) / (1 - a)


def test_where_rounding_leaves_no_residual_the_token_is_drawn_from_p():
    p, q = np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([[0.5, 0.75]])
    drawn = []
    assert judge([0], p, q, lambda weights: drawn.append(weights.tolist()) or np.array([len(drawn) - 1])) == (0, 1)
    assert drawn == [[[0.5, 0.5]], [[0.25, 0.75]]]


def pair(max_lens=(9, 9), **changes):
    """Two random models of different sizes."""
    big, small = build_gpt("rope", max_len=max_lens[0], **changes), build_gpt("learned", max_len=max_lens[1], d_model=6)
    return big, small


@pytest.mark.parametrize("max_lens", [(40, 40), (9, 7)], ids=str)
@pytest.mark.parametrize("gamma", [1, 12])
def test_greedy_text_and_its_log_probabilities_are_those_without_a_draft(gamma, max_lens):
    big, small = pair(max_lens)
    prompt, count = np.array([[1, 5, 3]]), 30
    alone = list(generate_tokens(SlidingState(big, 1), prompt, count, eos=None))
    used = Speculation(SlidingState(small, 1), gamma)
    both = list(used.generate_tokens(SlidingState(big, 1), prompt, count, eos=None))
    np.testing.assert_array_equal(*(np.concatenate([ids for ids, _ in steps]) for steps in (alone, both)))
    np.testing.assert_allclose(*(np.concatenate([log_p for _, log_p in steps]) for steps in (alone, both)), atol=1e-11)
    assert all(ids.dtype == prompt.dtype for ids, _ in both)
    assert used.counts["tokens"] == count
    assert used.counts["accepted"] + used.counts["passes"] == count


def test_a_model_accepts_nearly_every_guess_of_its_own():
    big, _ = pair((40, 40))
    used = Speculation(SlidingState(big, 1), 4)
    state, choose = SlidingState(big, 1), Sampling(np.random.default_rng(0), 0.7, top_k=5, top_p=0.9)
    assert len(list(used.generate_tokens(state, np.array([[1, 5]]), 30, choose, eos=None))) == 30
    assert used.counts == {"passes": 6, "tokens": 30, "judged": 24, "accepted": 24}
    assert used.rates() == (1.0, 5.0)
    assert Speculation(state).rates() == (0.0, 0.0)


def test_guesses_are_counted_up_to_the_first_rejected_one_and_a_draft_guesses_up_to_the_end_of_its_window():
    class Always(TableState):
        def extend_last(self, ids, count):
            return np.tile(np.where(np.arange(V) == self.seed, 0.0, -9.0), (1, count, 1))

    used = Speculation(Always(1), GAMMA)
    assert len(list(used.generate_tokens(Always(0), PROMPT, 5, eos=None))) == 5
    assert used.counts == {"passes": 5, "tokens": 5, "judged": 4, "accepted": 0}
    big, _ = pair((40, 40))
    used = Speculation(SlidingState(big, 1, 5), 12)
    next(used.generate_tokens(SlidingState(big, 1), np.array([[1, 5]]), 20, eos=None))
    assert used.counts == {"passes": 1, "tokens": 5, "judged": 4, "accepted": 4}


def test_models_with_layers_of_a_reader_read_again_what_they_forgot():
    class Mine(Linear):
        pass

    big, small = pair((40, 40))
    prompt = np.array([[1, 5, 3]])
    alone = [int(ids[0]) for ids, _ in generate_tokens(SlidingState(big, 1), prompt, 20, eos=None)]
    for model in (big, small):
        model.blocks.layers[0].feed_forward.sublayer.expand.__class__ = Mine
    states = [SlidingState(model, 1) for model in (big, small)]
    assert all(isinstance(each.state, RereadingState) for each in states)
    steps = Speculation(states[1], 3).generate_tokens(states[0], prompt, 20, eos=None)
    assert [int(ids[0]) for ids, _ in steps] == alone


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_goes_on_after_it_was_cut_back_or_refuses_at_once(kind):
    model = build_gpt("learned", **KINDS[kind])
    ids, other = np.array([[1, 6, 3, 8, 9]]), np.array([[1, 6, 7, 2, 4]])
    state = SlidingState(model, 1, 5)
    if kind in ("windowed", "linear"):
        with pytest.raises(ValueError, match="cannot be cut back"):
            next(Speculation(SlidingState(model, 1)).generate_tokens(state, ids[:, :1], 2))
        return
    state.extend(ids[:, :2])
    np.testing.assert_allclose(state.extend_last(ids[:, 2:], 2), model(ids)[:, -2:], atol=1e-12)
    assert state.remaining == 0
    state.cut_back(3)
    assert state.remaining == 3
    np.testing.assert_allclose(state.extend_last(other[:, 2:], 3), model(other)[:, -3:], atol=1e-12)


def test_what_a_draft_cannot_do_is_refused_before_anything_is_read():
    with pytest.raises(ValueError, match="gamma must be at least 1, got 0"):
        Speculation(TableState(1), 0)
    used = Speculation(TableState(1))
    with pytest.raises(ValueError, match="a draft guesses for one text, got 2"):
        next(used.generate_tokens(TableState(0), np.array([[0], [1]]), 3))
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        next(used.generate_tokens(TableState(0), PROMPT, 0))
    state, draft = (SlidingState(build_gpt("rope", **KINDS[kind]), 1, 8) for kind in ("windowed", "full"))
    with pytest.raises(ValueError, match="cannot be cut back"):
        next(Speculation(draft).generate_tokens(state, np.array([[1, 2]]), 3, eos=None))
    assert state.remaining == draft.remaining == 8


def test_the_rates_of_one_guess_and_one_pass_are_not_halved():
    one = Speculation(TableState(0))
    one.counts.update(judged=1, accepted=1, passes=1, tokens=2)
    assert one.rates() == (1.0, 2.0)
