"""Each lesson is a notebook, too: its cells are those of the script, and one that installs the package if need be."""

import ast
import json
import sys

import pytest

from docs.course_site.percent import read_cells
from minitransformer.cli import main
from minitransformer.cli.init import as_notebook
from minitransformer.course import FOLDER
from tests.lessons.conftest import LESSONS, every_lesson

pytest.importorskip("jupytext", reason="notebooks are not installed: pip install -e '.[notebook]'")


def cells_of(notebook, kind):
    """The sources of the notebook's cells of one kind."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


@every_lesson
def test_notebook_has_the_code_of_the_script_and_prose_without_dead_links(lesson):
    text = lesson.path.read_text("utf-8")
    notebook = json.loads(as_notebook(text))
    assert [cell["cell_type"] for cell in notebook["cells"][:2]] == ["markdown", "code"]
    setup, *code = cells_of(notebook, "code")
    assert "%pip install" in setup
    assert code == [cell.source for cell in read_cells(text) if not cell.prose]
    for source in code:
        ast.parse(source)
        assert "__file__" not in source
    prose = cells_of(notebook, "markdown")
    assert prose[0].startswith(f"# Lesson {lesson.number}: {lesson.title}")
    assert len(prose) == sum(cell.prose for cell in read_cells(text))
    assert "](../minitransformer" not in "".join(prose)
    assert "".join(prose).count("`minitransformer explore`") == text.count("](../minitransformer/explorer/")


def test_the_first_code_cell_installs_from_the_given_folder_only_if_the_package_is_missing(monkeypatch):
    pytest.importorskip("ipykernel")
    from IPython.core.inputtransformer2 import TransformerManager

    notebook = json.loads(as_notebook(LESSONS[5].path.read_text("utf-8"), "my/checkout of it"))
    code = TransformerManager().transform_cell(cells_of(notebook, "code")[0])
    package, asked = sys.modules["minitransformer"], []

    class Shell:
        def run_line_magic(self, magic, arguments):
            asked.append((magic, arguments))
            sys.modules["minitransformer"] = package

    monkeypatch.setattr(sys, "path", [])
    exec(code, {"get_ipython": Shell})
    assert (asked, sys.path) == ([], [str(FOLDER)])
    monkeypatch.setitem(sys.modules, "minitransformer", None)  # importing it is then a ModuleNotFoundError
    names = {"get_ipython": Shell}
    exec(code, names)
    assert asked == [("pip", 'install "{CHECKOUT}"')]
    assert names["CHECKOUT"] == "my/checkout of it"


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # of the notebook's machinery
def test_notebook_of_a_folder_of_ones_own_runs_from_the_first_cell_to_the_last(monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MINITRANSFORMER_FAST", "1")
    assert main(["init", str(tmp_path / "course"), "--notebooks"]) == 0
    lesson = min(LESSONS, key=lambda lesson: lesson.fast_seconds)
    folder = tmp_path / "course" / "lessons"
    notebook = nbformat.read(folder / f"{lesson.name}.ipynb", 4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "checks passed in fast mode" in printed
    assert (tmp_path / "course" / "runs/lessons/fast" / f"{lesson.name}.json").exists()
