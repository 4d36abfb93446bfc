"""Every lesson runs, checks what it says, and draws its figure; in fast mode, which leaves exact claims as they are."""

import math

import matplotlib.image
import pytest

from minitransformer.course import read_record
from tests.lessons.conftest import LESSONS

every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def finished(fast_runs, lesson):
    """The run of a lesson, which must have ended well, and its record."""
    run = fast_runs[lesson.name].result()
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    return run, read_record(lesson, fast=True)


@every_lesson
def test_lesson_runs_and_prints_each_check(lesson, fast_runs):
    run, record = finished(fast_runs, lesson)
    assert len(record["checks"]) >= 3
    for check in record["checks"]:
        assert math.isfinite(check["measured"])
        assert f"ok  {check['claim']}: " in run.stdout
    assert f"{lesson.name}: {len(record['checks'])} checks passed in fast mode" in run.stdout


@every_lesson
def test_lesson_draws_a_figure_that_is_not_blank(lesson, fast_runs):
    _, record = finished(fast_runs, lesson)
    image = matplotlib.image.imread(lesson.path.parent.parent / record["figure"])
    assert image[..., :3].std() > 0.02
    assert min(image.shape[:2]) > 100


@every_lesson
def test_page_of_claims_has_the_verdicts_that_the_lesson_gives(lesson, fast_runs):
    _, record = finished(fast_runs, lesson)
    lines = (lesson.path.parent / "CLAIMS.md").read_text("utf-8").splitlines()
    rows = [line.split(" | ")[:2] for line in lines if f"({lesson.name}.py)" in line]
    assert len(rows) == lesson.path.read_text("utf-8").count("lesson.claim(")
    for claim in record["claims"]:  # fast mode leaves out those that take long training
        assert ["| " + " ".join(claim["claim"].split()).replace("|", "\\|"), claim["verdict"]] in rows
