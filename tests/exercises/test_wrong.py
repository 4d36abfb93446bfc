"""Answers that were written without a look at the known mistakes: no wrong one passes, and the diagnosis is useful.

They are those that a clue explains, and one of each other lesson; test_checker.py plants the known mistakes.
"""

import re

import pytest

from minitransformer.exercises import diagnose
from tests.exercises.answers import ANSWERS, EXERCISES, hand_in
from tests.tiers import some

WRONG = [answer for answer in ANSWERS if not answer.is_right]
UNEXPLAINED = {"16_kv_cache-window_of_four"}  # wrong, and nothing is said about the cause


@pytest.mark.parametrize("answer", some(WRONG, 5), ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a wrong answer may divide by 0
def test_wrong_answer_is_refused_and_explained(answer, tmp_path):
    said = dict(re.findall(r"^# (\w+): (.+)$", answer.text, flags=re.MULTILINE))
    path = hand_in(answer.exercise, answer.text, tmp_path)
    written = [one for one in diagnose(answer.exercise, path) if one.status != "open"]
    assert {one.function for one in written} == set(said)
    for diagnosis in written:
        assert diagnosis.status == "wrong"
        sentences = [name for name, _ in diagnosis.mistakes] or diagnosis.clues
        assert any(said[diagnosis.function] in sentence for sentence in sentences), sentences
        unexplained = said[diagnosis.function] == "this is not one of the known mistakes"
        assert unexplained == (str(answer) in UNEXPLAINED)


def test_each_lesson_has_one():
    assert {answer.exercise.lesson for answer in WRONG} == {exercise.lesson for exercise in EXERCISES}
