"""`help` in a Python session: the package shows the way, every field is explained, and the examples run."""

import dataclasses
import pydoc
import re
import textwrap

import pytest

import minitransformer as mt
from minitransformer.data import task as data_task
from minitransformer.data.task import Task


def example_in(doc):
    """The indented code of a docstring, from its first import on."""
    blocks = re.findall(r"(?:^ {4}.*\n|^\n)+", doc, flags=re.MULTILINE)
    (code,) = [textwrap.dedent(block) for block in blocks if "import " in block]
    return code


def test_help_of_the_package_explains_where_each_of_its_names_belongs():
    text = pydoc.render_doc(mt, renderer=pydoc.plaintext).partition("PACKAGE CONTENTS")[0]
    assert [name for name in mt.__all__ if not re.search(rf"\b{name}\b", text)] == []
    assert "data.Task" in text
    assert "minitransformer --help" in text


def test_the_example_in_the_help_of_the_package_trains_and_decodes(capsys):
    code = example_in(mt.__doc__)
    assert "steps=1000" in code
    exec(compile(code.replace("steps=1000", "steps=2"), "help", "exec"), {})
    score, words = capsys.readouterr().out.splitlines()
    assert 0 <= float(score) <= 1
    assert re.fullmatch(r"[a-z]{6,12} -> [a-z]*", words)


@pytest.mark.parametrize(
    "kind", [mt.TrainingSettings, mt.TransformerConfig, mt.Rope, mt.Windowed, mt.Strided, mt.Experts]
)
def test_help_explains_every_field_and_no_other(kind):
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    fields = text.partition("Fields:\n")[2].partition("Methods defined here")[0]  # before them is the signature
    explained = re.findall(r"^ \|      (\w+): \S", fields, flags=re.MULTILINE)
    assert explained == [field.name for field in dataclasses.fields(kind)]


def test_the_task_in_the_help_on_tasks_is_all_that_training_needs():
    names = {}
    exec(compile(example_in(data_task.__doc__), "help", "exec"), names)
    model = mt.GPT(mt.gpt_config(18, d_model=8, num_heads=2, d_ff=6, num_layers=1, max_len=8))
    settings = mt.TrainingSettings(steps=30, batch_size=7, grad_accumulation_steps=2)
    history = mt.train(
        model, names["Counting"](), mt.Adam(model.parameters(), lr=1e-2), settings=settings, num_threads=2
    )
    assert history.losses[-1] < history.losses[0] - 0.5
    assert "rng" in Task.batch.__doc__
