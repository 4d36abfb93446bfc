"""The walk through an exercise in docs/exercises.md is what the checker says."""

import re

from minitransformer.course import FOLDER
from minitransformer.exercises import diagnose, find_exercise
from minitransformer.exercises.report import print_diagnoses
from tests.exercises.answers import hand_in

EXERCISE = find_exercise("06_attention_backward")
HEAD = "def attention_backward(do, cache):\n    q, k, v, p = cache\n"
COMMAND = f"$ minitransformer check {EXERCISE.name}\n"


def test_page_shows_a_mistake_and_the_right_answer_as_the_checker_reports_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = (FOLDER.parent / "docs" / "exercises.md").read_text("utf-8")
    section = page.split("## An example\n")[1].split("\n## ")[0]
    tries = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, flags=re.DOTALL)
    statuses = []
    for body, shown in tries:
        diagnoses = diagnose(EXERCISE, hand_in(EXERCISE, HEAD + body, tmp_path))
        print_diagnoses(EXERCISE, diagnoses)
        # the last digit of an error that is rounding alone may differ from machine to machine
        said = re.sub(r"\(\de-1\d\)", "(rounding)", capsys.readouterr().out)
        assert re.sub(r"\(\de-1\d\)", "(rounding)", shown) == COMMAND + said
        statuses.append(diagnoses[0].status)
    assert statuses == ["wrong", "passed"]
