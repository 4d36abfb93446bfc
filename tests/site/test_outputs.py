"""The outputs on the lessons' pages are what the lessons' cells print today."""

import json

from docs.course_site.percent import OUTPUTS, read_cells, read_outputs, stale_cells
from tests.lessons.conftest import LESSONS, every_lesson

TEXT = """\
# %% [markdown]
# # Title
#
#     x = 1

# %%
x = 1
print(x)


# %%
def f():
    pass
"""


def recorded(*printed):
    """The outputs of the text above."""
    code = [cell for cell in read_cells(TEXT) if not cell.prose]
    return {"cells": [{"source": cell.digest, "printed": text} for cell, text in zip(code, printed, strict=True)]}


def test_cells_are_read_with_the_line_on_which_they_begin():
    prose, first, second = read_cells(TEXT)
    assert prose[:3] == (True, "# Title\n\n    x = 1", 2)
    assert first[:3] == (False, "x = 1\nprint(x)", 7)
    assert second[:3] == (False, "def f():\n    pass", 12)
    assert [TEXT.splitlines()[cell.line - 1] for cell in (prose, first, second)] == ["# # Title", "x = 1", "def f():"]


def test_output_belongs_to_the_source_that_it_was_printed_by():
    outputs = recorded("1", "")
    assert stale_cells(TEXT, outputs) == []
    assert [cell.line for cell in stale_cells(TEXT.replace("x = 1\nprint", "x = 2\nprint"), outputs)] == [7]
    assert [cell.line for cell in stale_cells(TEXT.replace("# Title", "# Another"), outputs)] == []
    assert len(stale_cells(TEXT + "\n# %%\nf()\n", outputs)) == 3, "with another number of cells, all are in doubt"
    assert len(stale_cells(TEXT, None)) == 2


@every_lesson
def test_recorded_output_belongs_to_the_lesson_as_it_is(lesson):
    stale = stale_cells(lesson.path.read_text("utf-8"), read_outputs(lesson.name))
    lines = ", ".join(str(cell.line) for cell in stale)
    assert not stale, (
        f"the code of lesson {lesson.number} has changed since its output was recorded (cells at lines {lines} of "
        f"{lesson.path.name}): run python docs/record_outputs.py {lesson.number}"
    )


def test_recorded_outputs_are_those_of_full_runs_that_ended_well():
    assert {path.stem for path in OUTPUTS.glob("*.json")} == {lesson.name for lesson in LESSONS} | {"one_sitting"}
    assert sum(path.stat().st_size for path in OUTPUTS.glob("*.json")) < 200_000
    assert all(json.loads(path.read_text("utf-8"))["examples"] for path in OUTPUTS.glob("*.json"))
    for lesson in LESSONS:
        *_, last = printed = [cell["printed"] for cell in read_outputs(lesson.name)["cells"]]
        assert f"{lesson.name}: " in last
        assert "checks passed, " in last
        assert "fast mode" not in last
        assert len(list(filter(None, printed))) >= 3
