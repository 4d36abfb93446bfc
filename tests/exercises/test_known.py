"""The list of known mistakes: every entry is shown somewhere, and the explorer has the words of the list."""

from support.stations import STATIONS

import pytest

from minitransformer.exercises.known import known, known_mistakes
from tests.exercises.answers import EXERCISES
from tests.exercises.explorer_words import BLOCK, STRINGS, block, ids
from tests.museum.exhibits import PATIENTS


def test_every_mistake_of_the_list_is_shown_somewhere_and_asks_a_question():
    in_exercises = {mistake.id for exercise in EXERCISES for task in exercise.tasks for mistake in task.mistakes}
    in_sitting = {mistake.id for station in STATIONS for task in station.tasks.values() for mistake in task.mistakes}
    in_clinic = {id for id, mistake in known_mistakes().items() if mistake.name in {one.name for one in PATIENTS}}
    assert in_exercises | in_sitting | in_clinic | set(ids()) == known_mistakes().keys()
    assert all("?" in mistake.question for mistake in known_mistakes().values())
    assert len(in_exercises & in_sitting) > 30


def test_the_explorer_has_the_words_of_the_list():
    assert len(ids()) == 14
    assert all(known(id).moral for id in ids())
    assert BLOCK.search(STRINGS.read_text("utf-8"))[0] == block(), "run python -m tests.exercises.explorer_words"


def test_a_mistake_that_is_not_in_the_list_is_an_error():
    with pytest.raises(LookupError, match="has no mistake with the id a-slip"):
        known("a-slip")
