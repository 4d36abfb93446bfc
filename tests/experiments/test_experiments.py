"""All experiments have one shape, and `minitransformer experiment` runs each of them in a very small form."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import experiments
from experiments import EXPERIMENTS, device, gradient_reach, lengths, one_vector, running, table1
from experiments.measuring import equal_terms
from experiments.measuring.steps import torch_is_installed
from experiments.report import Table, as_markdown, as_text, pivot
from minitransformer import plotting
from minitransformer.data import get_task
from tests.cli.run import run
from tests.drawing import faults, unclear_lines
from tests.numbers import records, write_tables

OPTIONS = {
    "speed": ["tiny", "LSTM", "--dropout", 0.1, "--seconds", 0.01],
    "device": ["--backend", "numpy"],
    "processes": ["tiny", "small", "--memory"],
    "attention-cost": ["--seconds", 0.01],
    "decoding": ["--seconds", 0.01],
    "step-growth": ["--seconds", 0.01],
    "speedrun": ["--seconds", 0.05],
}
QUICK = ("coreference", "sharing", "sharpness")
LONG = {  # those that take longest; what they measure has tests of its own in this folder
    *("adversary", "attention-kinds", "communication", "experts", "faithfulness", "grokking", "induction", "lengths"),
    *("scaling-law", "since-2017", "speed", "speedrun", "step-growth", "denoising", "decoders"),
}
NEEDED = {"curves": ("torch",), "decoders": ("torch", "transformers"), "digits": ("torch", "sklearn")}
WITHOUT_FIGURE = {
    *("classification", "decoders", "denoising", "device", "digits", "finetuning", "processes", "sharing"),
    *(() if torch_is_installed() else ("speed",)),
}
each_experiment = pytest.mark.parametrize("name", EXPERIMENTS)


def tier(name):
    """The marks of the smallest tier that runs this experiment."""
    return () if name in QUICK else pytest.mark.weekly if name in LONG else pytest.mark.exhaustive


@pytest.fixture
def drawn(monkeypatch):
    """The figures of experiments, which are kept instead of saved."""
    figures = []
    monkeypatch.setattr(running, "save_figure", lambda figure, path: figures.append((figure, path)))
    yield figures
    for figure, _ in figures:
        plotting.pyplot().close(figure)


def test_the_list_names_every_file_of_the_room_with_its_question(capsys):
    files = {path.stem for path in Path(experiments.__file__).parent.glob("*.py")}
    assert {name.replace("-", "_") for name in EXPERIMENTS} == files - {"__init__", "running", "report"}
    status, out, _ = run(capsys, "experiment", "--json")
    assert status == 0
    for name, question in json.loads(out.splitlines()[-1]).items():
        assert f"{name} " in out
        assert question.endswith("?")


@each_experiment
def test_an_experiment_has_the_one_shape(name):
    experiment = running.find(name)
    assert all(callable(getattr(experiment, part)) for part in ("rows", "tables", "findings"))
    assert 0 < experiment.SECONDS[True] <= experiment.SECONDS[False] <= 1800


@pytest.mark.parametrize("name", [pytest.param(name, marks=tier(name)) for name in EXPERIMENTS])
def test_an_experiment_prints_saves_and_draws_what_it_measured(name, small, drawn, capsys, tmp_path):
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    words = ("experiment", name, *OPTIONS.get(name, []), "--quick", "--runs", tmp_path, "--json")
    status, out, err = run(capsys, *words)
    assert status == 0, err
    record = json.loads(out.splitlines()[-1])
    assert record == json.loads((tmp_path / "experiments" / f"{name}.json").read_text("utf-8"))
    assert record["experiment"] == name
    assert record["command"].startswith(f"minitransformer experiment {name}")
    assert "--quick" in record["command"]
    experiment = running.find(name)
    for table in experiment.tables(record["rows"]):
        assert as_text(table) in out
        assert len({len(line) for line in [table.columns, *table.cells]}) == 1
    assert record["findings"] == experiment.findings(record["rows"])
    said = " ".join(out.split())
    assert all(" ".join(finding.split()) in said for finding in record["findings"])
    for figure, path in drawn:
        assert path == tmp_path / "experiments" / f"{name}.png"
        assert faults(figure) == []
        assert unclear_lines(figure) == []
    assert bool(drawn) == (name not in WITHOUT_FIGURE)
    if name in TABLES_ALONE:
        kept = write_tables().tables(write_tables().read(name))
        made = experiment.tables(record["rows"])
        assert [form(table, name != "decoders") for table in made] == [
            form(table, name != "decoders") for table in kept
        ]


TABLES_ALONE = [name for name in records() if name in EXPERIMENTS and "rows" not in write_tables().read(name)]


def form(table, with_names):
    """The columns with a sign instead of each number, the lines' names, and which of their cells are empty."""
    columns = [re.sub(r"\d[\d,.]*", "#", column) for column in table.columns]
    return columns, [(line[0], *map(bool, line[1:])) for line in table.cells if with_names]


@pytest.mark.parametrize("name", records())
def test_findings_of_recorded_rows_are_those_that_were_recorded(name):
    record = write_tables().read(name)
    if "findings" in record:
        assert running.find(record["experiment"]).findings(record["rows"]) == record["findings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed", "--seconds", 0), "--seconds must be greater than 0, got 0.0"),
        (("processes", "huge"), "known sizes: tiny, small, medium, base-like"),
        (("curves", "copy"), "problem: invalid choice: 'copy'"),
        (("decoding", "--dropout", 0.5), "unrecognized arguments: --dropout 0.5"),
        (("decoding", "tiny"), "unrecognized arguments: tiny"),
        (("table3", "--seeds", 11), "--seeds must be from 1 to 10, got 11"),
        (("table4", "--seeds", 0), "--seeds must be from 1 to 10, got 0"),
        (("table1", "--seconds", 5), "unrecognized arguments: --seconds 5"),
    ],
    ids=str,
)
def test_an_experiment_refuses_what_it_cannot_use(arguments, message, capsys):
    outcome = run(capsys, "experiment", *arguments)
    assert (outcome.status, message in outcome.err) == (2, True), outcome.err


@pytest.mark.parametrize(("passed", "expected"), [(True, 0), (False, 1)])
def test_the_report_of_a_device_decides_the_exit_status(passed, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(device, "PARTS", {"part": lambda progress: (["a line"], {"value": 1}, passed)})
    status, out, _ = run(capsys, "experiment", "device", "--backend", "numpy", "--runs", tmp_path, "--json")
    assert status == expected
    record = json.loads(out.splitlines()[-1])
    assert record["passed"] == passed
    assert record["rows"]["parts"][0]["value"] == 1


def test_a_table_looks_alike_in_a_terminal_and_in_a_page(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [{"kind": kind, "n": n, "x": n * 1000.0 * len(kind)} for kind in ("a", "bb") for n in (1, 1024)]
    table = pivot("title", [*rows, {"kind": "c", "n": 1, "x": None}], "kind", "n", "x", ",.1f", 1e-3)
    assert table == Table(
        "title", ["kind", "1", "1,024"], [["a", "1.0", "1,024.0"], ["bb", "2.0", "2,048.0"], ["c", "", ""]]
    )
    assert as_text(table) == "title\n\nkind    1    1,024\na     1.0  1,024.0\nbb    2.0  2,048.0\nc"
    monkeypatch.setenv("COLUMNS", "17")
    narrow = ("kind   a\n1      1.0\n1,024  1,024.0", "kind   bb\n1      2.0\n1,024  2,048.0", "kind   c\n1\n1,024")
    assert as_text(table) == "title\n\n" + "\n\n".join(narrow)
    assert as_markdown(table).splitlines()[2:] == ["| a | 1.0 | 1,024.0 |", "| bb | 2.0 | 2,048.0 |", "| c | | |"]


def test_curves_cross_between_two_lengths_along_a_power_law():
    rows = [{"kind": "self-attention", "n": n, "x": n**2} for n in (10, 100, 1000)]
    rows += [{"kind": "other", "n": n, "x": 50 * n} for n in (10, 100, 1000)]
    assert table1.crossing(rows, "other", "x") == pytest.approx(50)
    assert table1.crossing([{**row, "x": 1} for row in rows], "other", "x") is None


def test_even_attention_passes_on_an_equal_share_of_the_gradient():
    for n in (2, 10, 100):
        assert gradient_reach.reach("attention, even", n, 0) == pytest.approx(1 / n)


def test_the_bias_of_the_forget_gate_decides_how_far_a_gradient_of_an_lstm_reaches():
    biases = ("LSTM, forget bias 0", "LSTM, forget bias 1", "LSTM, forget bias log n")
    closed, open_, by_length = (gradient_reach.reach(name, 60, 0) for name in biases)
    assert closed < 1e-3 * open_ < 1e-6 * by_length
    first, second = (gradient_reach.reach(biases[1], n, 0) for n in (60, 120))
    assert second < first**1.5, "it falls geometrically"


def test_an_lstm_that_lets_each_of_n_tokens_in_by_1_over_n_passes_on_about_as_much_as_a_mean():
    shares = [n * gradient_reach.reach("LSTM, and input bias -log n", n, seed) for n in (60, 240) for seed in range(3)]
    assert min(shares) > 0.5
    assert max(shares) < 3


@pytest.mark.parametrize("name", equal_terms.MODELS)
def test_models_have_as_many_parameters_as_fit(name):
    model = equal_terms.make_model(name, 29, seed=0, parameters=30_000)
    assert 0.8 * 30_000 < model.num_parameters() <= 30_000


def test_training_ends_when_its_cpu_time_is_used_up():
    task = get_task("copy")
    model = equal_terms.make_model("dot", len(task.vocabulary), seed=0, parameters=5_000)
    trained = equal_terms.train_for(model, task, 0.3, seed=0)
    assert trained["steps"] >= 1
    assert math.isfinite(trained["loss"])


def test_a_model_looks_at_the_letter_it_writes_if_the_largest_weight_is_on_it():
    batch = get_task("reverse").batch(np.random.default_rng(0), 1)
    source, target = np.array([[5, 7, 5, 2]]), np.array([[5, 7, 5, 2]])
    batch = batch._replace(source=source, target_out=target)
    weights = np.array([[[0.4, 0.1, 0.3, 0.2], [0.2, 0.3, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.9, 0.1, 0.0, 0.0]]])
    found = one_vector.looks(weights, batch)
    assert found["found"] == pytest.approx(2 / 3), "the second looks elsewhere, and the end does not count"
    assert found["weight"] == pytest.approx((0.7 + 0.3 + 1.0) / 3)


def test_the_figure_of_lengths_says_every_share_without_rounding_it_up():
    shares = {6: 1.0, 12: 0.995, 13: 0.005, 48: 0.0}
    scores = [{"task": "copy", "positions": "rope", "length": n, "exact_match": x} for n, x in shares.items()]
    figure = lengths.draw({"scores": scores})
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.texts] == ["100", "99.5", "0.5", "0"]
    assert set(panel.lines[0].get_xdata()) == {1.5}  # between 12, the longest in training, and 13
    plotting.pyplot().close(figure)
