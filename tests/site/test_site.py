"""The site as a reader gets it: every lesson with its outputs and figures, no dead link, nothing from another host."""

import re

from support.example_numbers import numbers

import pytest

from docs.course_site.asking import rest
from docs.course_site.percent import read_outputs
from minitransformer.course import read_recall
from minitransformer.example import load_example
from minitransformer.exercises import find_exercises
from tests.lessons.conftest import LESSONS
from tests.museum.exhibits import EXHIBITS
from tests.numbers import records
from tests.precision.page import read_lines
from tests.refusals.page import read_messages
from tests.site.build import ROOT
from tests.site.pages import dead, foreign_addresses, is_foreign

pytestmark = pytest.mark.exhaustive  # building takes 20 seconds
WRITTEN = ("error-messages", "museum", "floating-point")  # pages that show what the tests hold
EXPLORED = re.compile(r"explorer/index\.html#view=cell&cell=([\w.]+)")


def complaints(found):
    """A message with one complaint a line."""
    return "\n".join(["", *sorted(set(found))])


def test_every_link_leads_somewhere(site, pages):
    assert site / "index.html" in pages
    found = [
        f"{page.path.relative_to(site)}: {link}"
        for page in pages.values()
        for link in (*page.links, *page.loads)
        if dead(link, page, pages)
    ]
    assert not found, complaints(found)


def test_nothing_is_loaded_from_another_host(site, pages):
    found = [f"{page.path.name}: {load}" for page in pages.values() for load in page.loads if is_foreign(load)]
    for style in site.rglob("*.css"):
        found += [f"{style.name}: {address}" for address in foreign_addresses(style.read_text("utf-8"))]
    assert not found, complaints(found)


def test_every_picture_exists_and_is_described(pages):
    found = [
        f"{page.path.name}: {image['src']}"
        for page in pages.values()
        for image in page.images
        if not image.get("alt") or dead(image["src"], page, pages)
    ]
    assert not found, complaints(found)


def test_every_page_has_one_title_and_leads_back_to_the_front_page(site, pages):
    for page in pages.values():
        up = "../" * (len(page.path.relative_to(site).parts) - 1)
        assert f"{up}index.html" in page.links or page.path == site / "index.html", page.path


def test_lesson_has_its_outputs_figures_and_folds_and_leads_to_its_numbers_in_the_explorer(site, pages):
    for lesson in LESSONS:
        page, outputs = pages[site / "lessons" / f"{lesson.name}.html"], read_outputs(lesson.name)
        lines = {line.rstrip() for line in page.text.splitlines()}
        for cell in outputs["cells"]:
            assert {line.rstrip() for line in rest(cell["printed"]).splitlines()} <= lines, lesson
        shown = {image["src"].rpartition("/")[2] for image in page.images}
        assert set(lesson.figures) <= shown, lesson
        kinds = [fold.split()[-1] for fold in page.folds if fold.startswith("fold ")]
        folds = ["recall"] * bool(read_recall(lesson)) + ["deeper", "answers"]
        assert [kind for kind in kinds if kind not in ("code", "gated")] == folds, lesson
        assert kinds.count("gated") >= 2
        values = re.findall(r'data-key="[\w.]+" data-value="([-\d.e+]+)"', page.path.read_text("utf-8"))
        assert len(values) == sum(cell["printed"].count("guessed)") for cell in outputs["cells"])
        folded = "".join(page.folded).replace(",", "")
        assert [value for value in values if value not in folded] == []
        assert "lesson.finish(" in "".join(page.folded)
        assert "lesson = begin(" in "".join(page.folded)
        linked = {match[1] for link in page.links if (match := EXPLORED.search(link))}
        assert linked == {name.partition("[")[0] for name in outputs["examples"]}, lesson
        assert linked <= numbers(load_example()).keys()


def test_lesson_is_a_notebook_to_download_with_its_pictures_in_it(site, pages):
    nbformat = pytest.importorskip("nbformat")
    for lesson in LESSONS:
        assert f"{lesson.name}.ipynb" in pages[site / "lessons" / f"{lesson.name}.html"].links
        notebook = nbformat.read(site / "lessons" / f"{lesson.name}.ipynb", 4)
        nbformat.validate(notebook)
        attached = [name for cell in notebook.cells for name in cell.get("attachments", {})]
        assert list(dict.fromkeys(attached)) == list(lesson.figures), lesson
        prose = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert set(re.findall(r"!\[[^]]*\]\((.*?)\)", prose)) == {f"attachment:{name}" for name in lesson.figures}


def test_tasks_of_lessons_are_embedded_with_a_title_and_a_link(site, pages):
    framed = {page.path: page for page in pages.values() if page.frames}
    assert {path.stem[:2] for path in framed} >= {"03", "05", "06", "07", "08", "10", "12", "13", "15"}
    for page, frame in [(one, each) for one in framed.values() for each in one.frames]:
        assert frame["src"].startswith("../explorer/index.html#embed=")
        assert frame["title"].startswith("In the explorer: ")
        assert frame["title"] in " ".join(page.text.split())
        assert frame["loading"] == "lazy"
        assert frame["src"] in page.links


def test_front_page_shows_the_path_of_one_hour_and_all_lessons(site, pages):
    links = pages[site / "index.html"].links
    assert {f"lessons/{lesson.name}.html" for lesson in LESSONS} <= set(links)
    assert "explorer/index.html" in links
    assert sum(link.startswith("explorer/index.html#view=cell&cell=cross.") for link in links) == 8


def test_every_exercise_is_there_with_its_hints_folded_and_without_its_answer(site, pages):
    page = pages[site / "docs" / "exercises.html"]
    exercises = find_exercises()
    assert {exercise.name for exercise in exercises} <= page.ids
    kinds = [fold.split()[-1] for fold in page.folds]
    assert kinds.count("hint") == sum(len(exercise.hints) for exercise in exercises)
    assert kinds.count("source") == len(exercises)
    for exercise in exercises:
        assert f"minitransformer start {exercise.name}" in page.text
        answer = (ROOT / "lessons/exercises" / exercise.name / "solution.py").read_text("utf-8")
        assert answer.strip() not in page.text


def test_what_the_tests_and_records_hold_is_shown_on_its_page(site, pages):
    shown = {name: " ".join(pages[site / "docs" / f"{name}.html"].text.split()) for name in WRITTEN}
    messages = [" ".join(message.replace("`", "'").split()) for message in read_messages().values()]
    assert [message for message in messages if message not in shown["error-messages"]] == []
    names = [exhibit.name[1:] for exhibit in EXHIBITS]
    assert [name for name in names if shown["museum"].count(name) != 1] == []
    rows = [" ".join(line[:4]) for line in read_lines()]
    assert [row for row in rows if row not in shown["floating-point"]] == []
    assert set(records()) <= pages[site / "docs/records.html"].ids


def test_reference_shows_a_derivation_as_it_stands_in_the_source(site, pages):
    text = pages[site / "docs/api/functional.html"].text
    assert "Chain      ds_j = sum_i dp_i p_i (1[i = j] - p_j) = p_j (dp_j - sum_i dp_i p_i)" in text
    assert "Alias for field number" not in "".join(page.text for page in pages.values())
