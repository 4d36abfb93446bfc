"""Every lesson runs, checks what it says, and draws its figure; in fast mode, which leaves exact claims as they are.

By default the quickest one runs, with `--exhaustive` the six quickest, and with `--weekly` all.
"""

import math

import matplotlib.image
import pytest

from tests.lessons.conftest import LESSONS, every_lesson

QUICKEST, *OTHERS = sorted(LESSONS, key=lambda lesson: lesson.fast_seconds)
EVERY_LESSON = [
    QUICKEST,
    *(pytest.param(lesson, marks=pytest.mark.exhaustive) for lesson in OTHERS[:5]),
    *(pytest.param(lesson, marks=pytest.mark.weekly) for lesson in OTHERS[5:]),
]


@pytest.mark.parametrize("lesson", EVERY_LESSON, ids=lambda lesson: lesson.name)
def test_lesson_runs_as_its_pages_say(lesson, run_fast):
    """One test, so that the lesson runs once."""
    run, record = run_fast(lesson)
    each_check_is_printed_or_of_the_prose(lesson, run, record)
    the_figures_are_those_that_the_lesson_shows(lesson, record)
    the_page_of_claims_has_the_verdicts(lesson, record)


def each_check_is_printed_or_of_the_prose(lesson, run, record):
    assert record["printed"] >= 3
    for number, check in enumerate(record["checks"]):
        assert math.isfinite(check["measured"])
        assert (f"ok {check['claim']}: " in " ".join(run.stdout.split())) == (number < record["printed"])
    assert f"{lesson.name}: {len(record['checks'])} checks passed in fast mode" in run.stdout


def the_figures_are_those_that_the_lesson_shows(lesson, record):
    assert {path.rpartition("/")[2] for path in record["figures"]} == set(lesson.figures)
    for path in record["figures"]:
        image = matplotlib.image.imread(lesson.path.parent.parent / path)
        assert image[..., :3].std() > 0.02
        assert min(image.shape[:2]) > (50 if path.endswith("_map.png") else 100)  # the map is a strip


def the_page_of_claims_has_the_verdicts(lesson, record):
    rows = rows_of_claims(lesson)
    for claim in record["claims"]:  # fast mode leaves out those that take long training
        assert claim["said"]
        text = " ".join(claim["claim"].split()).replace("|", "\\|")
        assert [f"| {text}", claim["said"], claim["verdict"]] in rows


def rows_of_claims(lesson):
    """[claim, who says it, verdict] of each row of the page of claims that comes from this lesson."""
    lines = (lesson.path.parent / "CLAIMS.md").read_text("utf-8").splitlines()
    return [line.split(" | ")[:3] for line in lines if f"({lesson.name}.py)" in line]


@every_lesson
def test_page_of_claims_has_a_row_for_each_claim(lesson):
    checks = lesson.path.parent / "checks" / lesson.path.name
    assert len(rows_of_claims(lesson)) == checks.read_text("utf-8").count("lesson.claim(")
