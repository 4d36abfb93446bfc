"""`minitransformer lesson`: the list, one run, and what it refuses."""

import json
import os

import pytest

from minitransformer.course import DAY, LessonInfo, due_questions, find_lesson, find_lessons, read_recall
from tests.cli.run import assert_refused, run

HEADER = """\
# %% [markdown]
# # Lesson {number}: Of {word}
#
# **What is {word}, and why does everybody
# ask?**
#
# 8 min, with a pencil 20, going deeper 5 · runs in {time} · needs {needs} · difficulty 2 of 5 · paper: section
# 3.2.1
#
# ## A story
#
# It begins.

# %% Imports
{code}

# %% [markdown]
# ## Do you remember?
#
# 1. (00) Who began
#    the story of {word}?
# 2. (00) And then?
# 3. (00) And why?
#
# (The answers are at the end.)

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. She did, in
#    the year of {word}.
# 2. He.
# 3. Because.
#
# The exercise. 1. Nothing.
"""


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """A folder of two small lessons, which the command takes for the checkout's."""
    folder = tmp_path / "lessons"
    folder.mkdir()
    texts = {
        "00_one.py": {"word": "one", "time": "3 s (fast: 1 s)", "needs": "none", "code": "print('one was run')"},
        "01_two.py": {"word": "two", "time": "95 s, long (fast: 6 s)", "needs": "00", "code": "raise SystemExit(3)"},
    }
    for name, fields in texts.items():
        (folder / name).write_text(HEADER.format(number=name[:2], **fields), "utf-8")
    monkeypatch.setattr("minitransformer.course.FOLDER", folder)
    return folder


def test_list_says_what_there_is_and_what_was_run(lessons, capsys):
    record = {"seconds": 2.6, "checks": [{}, {}], "claims": [], "figures": ["plots/00_one.png"]}
    (lessons.parent / "runs/lessons/full").mkdir(parents=True)
    (lessons.parent / "runs/lessons/full/00_one.json").write_text(json.dumps(record), "utf-8")
    status, out, err = run(capsys, "lesson", "--json")
    assert (status, err) == (0, "")
    assert "00  Of one" in out
    assert "What is one, and why does everybody ask?" in out
    assert "8 min to read, difficulty 2 of 5 · run: 2 checks passed in 3 s" in out
    assert "8 min to read, difficulty 2 of 5 · not run yet" in out
    rows = json.loads(out.splitlines()[-1])
    assert [(row["number"], row["long"], row["needs"]) for row in rows] == [("00", False, []), ("01", True, ["00"])]
    assert rows[0]["record"] == record


def test_lesson_is_found_by_any_of_its_names(lessons):
    assert {find_lesson(name).path for name in ("00", "0", "00_one")} == {lessons / "00_one.py"}


def test_all_are_run_in_order_and_the_first_that_fails_ends_it(lessons, capfd):
    status, out, _ = run(capfd, "lesson", "all")
    assert status == 1
    assert out.index("Lesson 00: Of one") < out.index("one was run") < out.index("Lesson 01")
    status, out, _ = run(capfd, "lesson", "1", "0")
    assert status == 1
    assert "one was run" not in out


def test_fast_mode_is_handed_to_the_lesson(lessons, capfd):
    code = "import os; print('mode', repr(os.environ['MINITRANSFORMER_FAST']))"
    path = lessons / "00_one.py"
    path.write_text(path.read_text("utf-8").replace("print('one was run')", code), "utf-8")
    assert "mode '1'" in run(capfd, "lesson", "0", "--fast")[1]
    assert "mode ''" in run(capfd, "lesson", "0")[1]


@pytest.mark.parametrize(
    ("old", "new"), [("runs in 3 s", "runs soon"), ("Lesson 00", "Lesson 07"), ("2 of 5", "6 of 5")]
)
def test_header_that_is_none_is_named(old, new, lessons, capsys):
    path = lessons / "00_one.py"
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    assert_refused(run(capsys, "lesson"), "00_one.py has no header of a lesson")


def test_header_says_what_the_lesson_says_of_itself(lessons):
    first, second = find_lessons()
    assert first == LessonInfo(
        path=lessons / "00_one.py",
        number="00",
        title="Of one",
        question="What is one, and why does everybody ask?",
        minutes=8,
        pencil_minutes=20,
        deeper_minutes=5,
        seconds=3,
        fast_seconds=1,
        long=False,
        needs=(),
        difficulty=2,
        paper="section 3.2.1",
        figures=(),
    )
    assert (second.needs, second.seconds, second.fast_seconds, second.long) == (("00",), 95, 6, True)


def test_questions_of_a_lesson_come_with_their_answers(lessons):
    assert read_recall(find_lesson("1")) == [
        ("(00) Who began the story of two?", "She did, in the year of two."),
        ("(00) And then?", "He."),
        ("(00) And why?", "Because."),
    ]


def test_questions_come_back_a_day_after_the_lesson_was_run_three_a_day_until_all_were_asked(lessons):
    def run_at(name, days):
        path = lessons.parent / "runs" / "lessons" / "full" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", "utf-8")
        os.utime(path, (days * DAY, days * DAY))

    assert due_questions(1000 * DAY) == []
    run_at("00_one", 999.5)
    assert due_questions(1000 * DAY) == []
    assert [question for _, question, _ in due_questions(1000.5 * DAY)] == [q for q, _ in read_recall(find_lesson("0"))]
    run_at("01_two", 999.5)
    today, tomorrow = due_questions(1000.5 * DAY), due_questions(1001.5 * DAY)
    assert {(number, *pair) for number in ("00", "01") for pair in read_recall(find_lesson(number))} == {
        *today,
        *tomorrow,
    }
    assert due_questions(1000.9 * DAY) == today


def test_the_files_of_one_evening_come_before_the_lessons(lessons, capsys):
    out = run(capsys, "lesson").out
    words = ("one_file/transformer.py", "one_file/gpt.py", "minitransformer sit", "00  ")
    assert sorted(words, key=out.index) == [*words]


def test_record_that_is_none_is_named(lessons, capsys):
    path = lessons.parent / "runs/lessons/full/00_one.json"
    path.parent.mkdir(parents=True)
    path.write_text("{", "utf-8")
    assert_refused(run(capsys, "lesson"), "is not a lesson's record")
