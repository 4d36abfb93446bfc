"""Scaling laws: the fits on losses that are known, and the prediction that was filed before its run."""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from experiments import scaling_law
from experiments.measuring.laws import CHINCHILLA, PUBLISHED, Law, bootstrap, fit_law, parabola, power
from tests.cli.run import assert_refused, run

DOCS = Path(__file__).parents[2] / "docs"
C = np.repeat([1e10, 3e10, 1e11], 5)
N = np.tile([2e3, 5e3, 1.2e4, 3e4, 7e4], 3) * np.repeat([1.0, 1.5, 2.2], 5)


def test_the_fit_finds_the_constants_of_a_law_from_its_losses():
    law = Law(E=1.1, A=30.0, B=200.0, a=0.35, b=0.42)
    found = fit_law(N, C / 6 / N, law.loss(N, C / 6 / N))
    assert found == pytest.approx(law, rel=1e-3)


def test_the_optimum_of_a_law_is_that_of_all_sizes_tried():
    law = Law(E=1.1, A=30.0, B=200.0, a=0.35, b=0.42)
    sizes = np.geomspace(1e2, 1e7, 200_001)
    tried = sizes[law.loss(sizes, 1e11 / 6 / sizes).argmin()]
    assert law.optimum(1e11)[0] == pytest.approx(tried, rel=1e-3)
    assert np.prod(law.optimum(1e11)) == pytest.approx(1e11 / 6)


def test_a_parabola_over_the_logarithm_has_the_lowest_point_that_it_was_made_with():
    sizes = np.array([1e3, 2e3, 5e3, 9e3])
    assert parabola(sizes, 2.5 + 0.1 * np.log(sizes / 3e3) ** 2) == pytest.approx((3e3, 2.5))
    assert power(sizes, 7 * sizes**-0.3) == pytest.approx((7, -0.3))


def test_the_bootstrap_draws_the_seeds_of_each_cell_apart():
    losses = np.array([[1.0, 3.0], [10.0, 10.0]])
    draws = bootstrap(lambda mean: {"first": mean[0], "second": mean[1]}, losses, np.random.default_rng(0))
    assert set(draws["first"]) == {1.0, 2.0, 3.0}
    assert set(draws["second"]) == {10.0}


@pytest.mark.parametrize(("paper", "tokens"), [("Hoffmann et al. 2022", 92.6), ("Besiroglu et al. 2024", 18.4)])
def test_the_printed_constants_of_the_papers_give_these_tokens_per_parameter(paper, tokens):
    best, data = PUBLISHED[paper].optimum(CHINCHILLA)
    assert data / best == pytest.approx(tokens, abs=0.05)


def runs_of(law, seeds=3):
    """Runs with the losses of a law, and a little noise from the seed."""
    noise = np.random.default_rng(1).normal(1, 1e-4, (len(N), seeds))
    return [
        {"flops": c, "width": int(n), "N": n, "D": c / 6 / n, "seed": seed, "loss": law.loss(n, c / 6 / n) * factor}
        for c, n, factors in zip(C, N, noise, strict=True)
        for seed, factor in enumerate(factors)
    ]


@pytest.mark.exhaustive
def test_the_fit_that_predicts_the_largest_budget_from_the_others_makes_the_prediction(small):
    flat = Law(E=2.0, A=30.0, B=200.0, a=0.35, b=0.42)  # with so high a floor the loss is no power of C
    row = scaling_law.predict(runs_of(flat), 1e12)
    assert row["fit"] == "law"
    assert row["loss"] == pytest.approx(flat.loss(*flat.optimum(1e12)), rel=2e-3)
    assert row["interval"][0] < row["loss"] < row["interval"][1]


@pytest.mark.exhaustive
def test_a_prediction_is_written_first_and_tested_when_it_is_asked_for_again(small, tmp_path, monkeypatch):
    law = Law(E=1.1, A=30.0, B=200.0, a=0.35, b=0.42)

    def train(width, flops, seed, peak, windows, folder):
        weights = scaling_law.make_model(width, None).num_parameters()
        about = {"width": width, "flops": flops, "seed": seed, "peak": peak, "windows": windows, "N": weights}
        return {**about, "D": flops / 6 / weights, "loss": law.loss(weights, flops / 6 / weights) + 0.001 * seed}

    monkeypatch.setattr(scaling_law, "train", train)
    options = argparse.Namespace(quick=False, seeds=range(3), predict=3e8, runs=tmp_path)
    first = scaling_law.rows(options)
    assert (len(first["prediction"]), first["tests"]) == (1, [])
    written = (tmp_path / "experiments" / "scaling-law-3e+08.json").read_bytes()
    again = scaling_law.rows(options)
    assert again["prediction"] == first["prediction"]
    assert [test["seed"] for test in again["tests"]] == [0, 1, 2]
    assert again["prediction"][0]["sha256"] == hashlib.sha256(written).hexdigest()
    assert again["runs"] == first["runs"]


def test_the_recorded_prediction_is_the_file_that_was_committed():
    content = (DOCS / "predictions" / "scaling-law.json").read_bytes()
    record = DOCS / "records" / "scaling-law.json"
    if record.exists():
        (row,) = json.loads(record.read_text("utf-8"))["rows"]["prediction"]
        assert row.pop("sha256") == hashlib.sha256(content).hexdigest()
        assert row == json.loads(content)


def test_a_budget_that_was_measured_is_no_prediction(capsys, tmp_path):
    outcome = run(capsys, "experiment", "scaling-law", "--predict", 1e11, "--runs", tmp_path)
    assert_refused(outcome, "--predict must be more than 1.25e+11, the largest budget measured, and less than 1e16")
