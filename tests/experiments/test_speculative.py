"""The prediction of the experiment on speculative decoding."""

import pytest

from experiments import speculative


def rows_of(speed, a=0.5, guess=0.1, cost=0.25):
    """Two texts with the same speed for each gamma; a pass costs `cost` more for each further token."""
    counts = {"accepted": 5, "judged": 10, "tokens": 30, "passes": 20}
    texts = [{"gamma": 0, "a": a}, {"gamma": 0, "a": a}]
    texts += [{"gamma": gamma, "speed": speed + x, **counts} for gamma in speculative.GAMMAS for x in (-0.001, 0.001)]
    passes = [
        {"n": n, "guess": guess, "pass": 1 + (n - 1) * cost, "product": 1 + n, "row by row": n}
        for n in range(1, speculative.GAMMAS[-1] + 2)
    ]
    return {"texts": texts, "passes": passes}


def test_the_speed_is_predicted_from_the_tokens_of_a_pass_and_their_cost():
    for row in speculative.summaries(rows_of(1.7, a=0.8)):
        gamma = row["gamma"]
        tokens = (1 - 0.8 ** (gamma + 1)) / 0.2
        assert row["formula"] == pytest.approx(tokens)
        assert row["predicted"] == pytest.approx(tokens / (1 + 0.25 * gamma + 0.1 * gamma))
        assert row["free"] == pytest.approx(tokens / (1 + 0.1 * gamma))
        assert (row["accepted"], row["tokens"]) == (0.5, 1.5)
