"""Each lesson is a notebook, too: jupytext converts it, and its cells run where there is no file."""

import ast

import pytest

from tests.lessons.conftest import LESSONS

jupytext = pytest.importorskip("jupytext")
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@every_lesson
def test_lesson_converts_to_a_notebook_whose_cells_are_whole(lesson):
    notebook = jupytext.read(lesson.path)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert {"markdown", "code"} == set(kinds)
    assert notebook.cells[0].source.startswith(f"# Lesson {lesson.number}: {lesson.title}")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
            assert "__file__" not in cell.source


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # of the notebook's machinery
def test_notebook_runs_from_the_first_cell_to_the_last(monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MINITRANSFORMER_FAST", "1")
    lesson = min(LESSONS, key=lambda lesson: lesson.fast_seconds)
    notebook = jupytext.read(lesson.path)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(lesson.path.parent)}}
    )
    client.execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "checks passed in fast mode" in printed
