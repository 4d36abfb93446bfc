"""Wrong answers that were written without a look at the known mistakes: none passes, and the diagnosis is useful.

Each file of `wrong` begins with what must be said about each of its functions: the name of a known mistake, or a clue.
"""

import re

import pytest

from minitransformer.exercises import diagnose, find_exercise
from tests.exercises.answers import EXERCISES, HERE, hand_in

FILES = sorted((HERE / "wrong").glob("*.py"))
UNEXPLAINED = {"16_kv_cache__window_of_four"}  # wrong, and nothing is said about the cause


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a wrong answer may divide by 0
def test_wrong_answer_is_refused_and_explained(file, tmp_path):
    exercise, text = find_exercise(file.stem.partition("__")[0]), file.read_text("utf-8")
    said = dict(re.findall(r"^# (\w+): (.+)$", text, flags=re.MULTILINE))
    written = [one for one in diagnose(exercise, hand_in(exercise, text, tmp_path)) if one.status != "open"]
    assert {one.function for one in written} == set(said)
    for diagnosis in written:
        assert diagnosis.status == "wrong"
        sentences = [name for name, _ in diagnosis.mistakes] or diagnosis.clues
        assert any(said[diagnosis.function] in sentence for sentence in sentences), sentences
        unexplained = said[diagnosis.function] == "this is not one of the known mistakes"
        assert unexplained == (file.stem in UNEXPLAINED)


def test_there_are_many_of_them_for_all_lessons():
    assert len(FILES) >= 110
    assert {file.stem[:2] for file in FILES} == {exercise.lesson for exercise in EXERCISES}
