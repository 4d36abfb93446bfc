"""`minitransformer init`: what it copies, what it leaves alone, and that all commands then use that folder."""

import ast
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from minitransformer.cli import main
from minitransformer.course import FOLDER, MARKER, find_lessons, own_folder, read_record
from minitransformer.exercises import find_exercise, find_exercises
from tests.cli.run import assert_refused, run

NAME = "02_relu_backward"
WHEEL = FOLDER / "support" / "wheel.py"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every test begins in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder that `init` has made."""
    folder = tmp_path_factory.mktemp("init") / "course"
    assert main(["init", str(folder)]) == 0
    return folder


@pytest.fixture
def course(made, here, monkeypatch):
    """A copy of it, and the current folder."""
    shutil.copytree(made, here / "course")
    monkeypatch.chdir("course")
    return here / "course"


def test_lessons_figures_and_exercises_are_copied_without_the_solutions(capsys, here):
    status, out, err = run(capsys, "init", "my course")
    assert (status, err) == (0, "")
    figures = len(list((FOLDER.parent / "plots").glob("[0-9]*.png")))
    counts = f"{len(find_lessons())} lessons, {figures} figures, {len(find_exercises())} exercises"
    assert f"copied to my course: {counts}" in out
    assert "\n  cd 'my course'\n" in out
    copied = {path.relative_to("my course") for path in Path("my course").rglob("*.*")}
    some = (
        "lessons/05_scaled_dot_product.py lessons/README.md lessons/one_sitting.ipynb plots/05_scaled_dot_product.png"
    )
    assert {*map(Path, some.split())} <= copied
    assert {path.name for path in copied if path.match("one_file/*")} == {"gpt.py", "transformer.py"}  # without notes
    assert [path.name for path in copied if path.match("exercises/*/*")] == ["exercise.py"] * len(find_exercises())
    for path in copied:
        if path.name != MARKER:
            assert (here / "my course" / path).read_bytes() == (FOLDER.parent / path).read_bytes()


def test_copied_pages_have_no_dead_links(course):
    for page in Path("lessons").glob("*.md"):
        links = re.findall(r'\]\(([^)#]+)|src="([^"]+)"', page.read_text("utf-8"))
        local = [link for pair in links for link in pair if link and "://" not in link]
        assert [link for link in local if not (page.parent / link).exists()] == []


def test_copied_lessons_import_nothing_that_is_not_there(course):
    own = re.compile(r"^from ((?:support|experiments)[\w.]*) import", flags=re.MULTILINE)
    imported = {name for path in Path("lessons").rglob("*.py") for name in own.findall(path.read_text("utf-8"))}
    files = [Path("lessons", *name.split(".")) for name in sorted(imported)]
    assert {Path("lessons/support/lab"), Path("lessons/experiments/adversary")} <= set(files)
    assert [file for file in files if not (file.with_suffix(".py").exists() or (file / "__init__.py").exists())] == []


def test_the_list_of_lessons_leads_to_the_copied_files_of_one_evening(course, capsys):
    out = run(capsys, "lesson").out
    for name in ("transformer", "gpt"):
        assert f"python {Path('lessons') / 'one_file' / name}.py\n" in out


def test_the_wheel_ships_all_that_init_copies(course):
    strings = [node.value for node in ast.walk(ast.parse(WHEEL.read_text("utf-8"))) if is_pattern(node)]
    shipped = {path.relative_to(FOLDER.parent) for pattern in strings for path in FOLDER.parent.glob(pattern)}
    copied = {path.relative_to(course) for path in course.rglob("*.*") if path.name != MARKER}
    assert copied - shipped == set()
    assert {path.name for path in shipped if path.match("one_file/*")} == {"gpt.py", "transformer.py"}


def is_pattern(node):
    """Whether a node of a syntax tree is a string such as "lessons/*.md"."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"(?:lessons|plots)/\S+$", node.value)
    )


def test_a_second_time_only_what_is_missing_is_copied_and_changed_files_are_kept(course, capsys):
    mine, gone = Path("lessons/05_scaled_dot_product.py"), Path("lessons/support/lab.py")
    mine.write_text("my notes", "utf-8")
    gone.unlink()
    status, out, _ = run(capsys, "init", ".", "--json")
    assert status == 0
    assert "copied to .: 1 other files\n" in out
    assert f"kept your own {mine}, which differs from ours" in out
    assert "cd" not in out
    assert json.loads(out.splitlines()[-1])["kept"] == [str(mine)]
    assert mine.read_text("utf-8") == "my notes"
    assert gone.read_bytes() == (FOLDER / "support" / "lab.py").read_bytes()


def test_the_folder_is_found_from_below_and_not_from_outside(course, here, monkeypatch):
    assert own_folder() == course
    monkeypatch.chdir("lessons/exercises")
    assert own_folder() == course
    monkeypatch.chdir(here)
    assert own_folder() is None


def test_a_checkout_inside_such_a_folder_keeps_its_own_lessons(course, monkeypatch):
    (course / "clone" / "lessons").mkdir(parents=True)
    monkeypatch.setattr("minitransformer.course.FOLDER", course / "clone" / "lessons")
    monkeypatch.chdir("clone/lessons")
    assert own_folder() is None


@pytest.mark.exhaustive
def test_the_exercises_of_the_folder_are_started_checked_and_counted(course, capsys, monkeypatch):
    monkeypatch.chdir("lessons")
    out = run(capsys, "start", NAME).out
    path = course / "my_exercises" / f"{NAME}.py"
    assert f"write your solution in {path}" in out
    path.write_text(path.read_text("utf-8") + "\n\n" + find_exercise(NAME).solution, "utf-8")
    status, out, err = run(capsys, "check")
    assert (status, err) == (0, "")
    assert f"the next open exercise is {NAME}" in out
    assert "1 of 3 hints" in run(capsys, "hint", NAME).out
    assert f"1 of {len(find_exercises())} passed" in run(capsys, "progress").out
    out = run(capsys, "train", "copy", "--mine", "--steps", 1).out
    assert re.search(rf"{NAME} +relu_backward +yours", out)


@pytest.mark.exhaustive
def test_the_lessons_of_the_folder_are_listed_and_run_and_leave_their_record_there(course, capfd):
    lesson = find_lessons()[10]
    assert lesson.path == course / "lessons" / "10_layer_norm.py"
    lesson.path.write_text(lesson.path.read_text("utf-8").replace("# %%\n", '# %%\nprint("mine")\n', 1), "utf-8")
    status, out, _ = run(capfd, "lesson", "10", "--fast")
    assert status == 0
    assert "mine" in out
    assert read_record(lesson, fast=True)["checks"]
    assert (course / "runs/lessons/fast/10_layer_norm.png").exists()


def test_lessons_that_were_deleted_are_said_with_the_command_that_copies_them(course, capsys):
    for path in Path("lessons").glob("*.py"):
        path.unlink()
    assert_refused(run(capsys, "lesson"), f"there are no lessons in {course / 'lessons'}", "minitransformer init")


@pytest.mark.exhaustive
def test_notebooks_stand_beside_the_scripts_and_install_from_this_checkout(course, capsys):
    pytest.importorskip("jupytext", reason="notebooks are not installed: pip install -e '.[notebook]'")
    mine = Path("lessons/06_attention_backward.ipynb")
    mine.write_text("{}", "utf-8")
    out = run(capsys, "init", ".", "--notebooks").out
    assert f"copied to .: {len(find_lessons()) - 1} notebooks\n" in out
    assert f"kept your own {mine}" in out
    assert "\n  jupyter notebook lessons/00_reverse.ipynb\n" in out
    assert mine.read_text("utf-8") == "{}"
    setup = json.loads(Path("lessons/05_scaled_dot_product.ipynb").read_text("utf-8"))["cells"][1]["source"]
    assert f"CHECKOUT = {json.dumps(FOLDER.parent.as_posix())}\n" in setup


def test_notebooks_without_jupytext_are_refused_before_anything_is_copied(capsys, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupytext", None)
    outcome = run(capsys, "init", "course", "--notebooks")
    assert_refused(outcome, "notebooks need jupytext, which is not installed", "pip install -e '.[notebook]'")
    assert list(here.iterdir()) == []


def test_a_file_and_the_checkout_itself_are_refused(capsys, here):
    (here / "file").write_text("", "utf-8")
    assert_refused(run(capsys, "init", "file"), "cannot write into the folder file")
    assert_refused(run(capsys, "init", FOLDER.parent), "is the checkout itself")
    assert not (FOLDER.parent / MARKER).exists()
