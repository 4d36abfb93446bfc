"""The scripts that measure what the pages say: docs/record_*.py, in a very small form."""

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

from minitransformer import plotting
from minitransformer.data import Corpus
from tests.drawing import faults

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Load a script as a module that records into a folder of its own."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(module, "RECORD", tmp_path / module.RECORD.name)
        return module

    return load


def shape(record):
    """The columns of a record's tables, and their lines with a sign instead of each number."""
    return [
        (table["columns"], [[re.sub(r"\d[\d,.]*", "#", cell) for cell in line[1:]] for line in table["cells"]])
        for table in record["tables"]
    ]


def committed(module):
    return json.loads((DOCS / "records" / module.RECORD.name).read_text("utf-8"))


def made_by(script, monkeypatch, **values):
    """What a script records with these values instead of its own."""
    for name, value in values.items():
        monkeypatch.setattr(script, name, value)
    assert script.main(*[[]] * bool(inspect.signature(script.main).parameters)) == 0
    return json.loads(script.RECORD.read_text("utf-8"))


def names_in(record):
    """What the lines of the first table are about."""
    return [line[0] for line in record["tables"][0]["cells"]]


@pytest.mark.exhaustive
def test_the_table_of_fine_tuning_is_written_by_its_script(load, monkeypatch):
    script = load("record_finetuning")
    texts = [Corpus(f"To {i} or not to {i}: " * 20, "To be: " * 20) for i in (1, 2)]
    small = {"PLAYS": 1, "LIBRARY": 1, "BATCH": 2, "WINDOWS": 2, "TURNS": 2, "SEEDS": (0, 1)}
    sizes = {**script.SIZES, "d_model": 32, "d_ff": 32}
    made = made_by(script, monkeypatch, texts=lambda: texts, SIZES=sizes, **small)
    assert shape(made) == shape(committed(script))
    assert names_in(made) == names_in(committed(script))
    memory = {line[0]: line[1] for line in made["tables"][0]["cells"]}
    assert memory["everything"] == memory["everything, from new weights"] == "100.0%"
    script.main(["--rate", "0.1"])


@pytest.mark.exhaustive
def test_the_table_of_classification_is_written_by_its_script(load, monkeypatch):
    script = load("record_classification")
    train, held_out = script.load_labelled()
    small = {"SEEDS": (0, 1), "STEPS": {30: 1, 60: 1, 90: 1}, "HIDDEN": 1, "BATCH": 2, "HIDDEN_BATCH": 2}
    made = made_by(
        script,
        monkeypatch,
        load_labelled=lambda: (train[:100], held_out[::20]),
        load_python_topics=lambda: script.split_text("To be or not to be. " * 200),
        docstrings=lambda: train[:200],
        **small,
    )
    made, kept = made["tables"][0], committed(script)["tables"][0]
    assert len(made["columns"]) == len(kept["columns"])
    assert [(line[0], bool(line[-1])) for line in made["cells"]] == [
        (line[0], bool(line[-1])) for line in kept["cells"]
    ]


def test_the_table_of_shared_layers_is_written_by_its_script(load, monkeypatch):
    script, corpus = load("record_sharing"), Corpus("To be or not to be. " * 20, "To be: " * 20)
    small = {"SEEDS": (0, 1), "STEPS": 1, "BATCH": 1, "LENGTH": 8}
    made = made_by(script, monkeypatch, load_python_topics=lambda: corpus, **small)
    assert made["tables"][0]["columns"] == committed(script)["tables"][0]["columns"]
    assert names_in(made) == names_in(committed(script))
    assert not list(script.RECORD.parent.glob("*.partial"))


@pytest.mark.exhaustive
def test_the_table_of_digits_is_written_by_its_script(load, monkeypatch):
    for package in ("torch", "sklearn"):
        pytest.importorskip(package)
    script = load("record_digits")
    made = made_by(script, monkeypatch, STEPS=2)
    assert shape(made) == shape(committed(script))
    kept, again = (record["tables"][0]["cells"] for record in (committed(script), made))
    assert [line[:2] for line in again] == [line[:2] for line in kept]
    assert again[-1][2:-1] == kept[-1][2:-1]  # logistic regression, which takes no steps


@pytest.mark.exhaustive
def test_both_scripts_of_preferences_run_and_their_tables_and_figure_are_made(load, monkeypatch, tmp_path, capsys):
    script, figures = load("record_preferences"), []
    one_digit = {"range(100) for b in range(100)": "range(10) for b in range(10)", "0.4, 200": "0.2, 10"}
    monkeypatch.setattr(script, "save_figure", lambda figure, path: figures.append((figure, path)))
    made = made_by(script, monkeypatch, CHANGES=one_digit, SEEDS=range(2), FIGURE=tmp_path / "figure.png")
    ((figure, path),) = figures
    assert path == script.FIGURE
    assert faults(figure) == []
    plotting.pyplot().close(figure)
    assert shape(made) == shape(committed(script))
    said = capsys.readouterr().out
    found = re.findall(r"^(.*): [\d.]+% of the test sums were right, [\d.]+% are$", said, re.MULTILINE)
    assert found == 2 * names_in(made)[1:]


def test_a_page_whose_scripts_have_changed_is_refused(load, monkeypatch):
    script = load("record_preferences")
    monkeypatch.setattr(script, "CHANGES", {"a line that is not there": ""})
    with pytest.raises(ValueError, match="must have 'a line that is not there' once"):
        script.run(0)


@pytest.mark.weekly
def test_the_table_of_denoising_is_written_by_its_script(load, monkeypatch):
    script = load("record_denoising")
    small = ("--steps", "2", "--d-model", "16", "--num-layers", "1", "--batch-size", "2", "--vocab-size", "300")
    made = made_by(script, monkeypatch, OPTIONS=small)
    assert shape(made) == shape(committed(script))
    assert names_in(made) == ["infilling", "order", "both"]
