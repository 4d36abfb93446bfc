"""start, check, hint, progress and solution, as a learner uses them, rightly and wrongly."""

import json
from types import SimpleNamespace

import pytest

from minitransformer.cli import check as check_command
from minitransformer.course import find_lessons
from minitransformer.exercises import Workshop, choose_exercises, find_exercise, find_exercises
from minitransformer.exercises.workshop import SITTING
from tests.cli.run import assert_refused, ctrl_c, run
from tests.exercises.answers import hand_in

NAME = "06_attention_backward"
EXERCISE = find_exercise(NAME)
WRONG = EXERCISE.solution.replace(" / math.sqrt(q.shape[-1])", "")


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine"


@pytest.fixture
def started(mine):
    mine.mkdir()
    hand_in(EXERCISE, "", mine)
    return mine


def test_start_makes_the_file_and_says_where(mine, capsys):
    status, out, err = run(capsys, "start", NAME, "--folder", mine, "--json")
    assert (status, err) == (0, "")
    assert f"write your solution in {mine / NAME}.py" in out
    assert json.loads(out.splitlines()[-1]) == [{"exercise": NAME, "path": f"{mine / NAME}.py", "new": True}]
    assert (mine / f"{NAME}.py").read_text("utf-8") == EXERCISE.path.read_text("utf-8")
    assert "already started" in run(capsys, "start", NAME, "--folder", mine)[1]


def test_check_goes_from_wrong_to_passed(started, capsys):
    hand_in(EXERCISE, WRONG, started)
    status, out, _ = run(capsys, "check", NAME, "--folder", started)
    assert status == 1
    assert "dq WRONG   dk WRONG   dv ok" in out
    assert "yours / right = 2.236 everywhere = sqrt(D)" in out
    assert "= the scale of the scores, 1/√D, is missing on the way back" in " ".join(out.split())
    assert out.endswith(f"    see {EXERCISE.see}\n    for a hint: minitransformer hint 06_attention_backward\n")
    hand_in(EXERCISE, EXERCISE.solution, started)
    status, out, _ = run(capsys, "check", NAME, "--folder", started, "--json")
    assert status == 0
    assert "passed" in out
    assert "\033" not in out, "no colour where there is no terminal"
    (diagnosis,) = json.loads(out.splitlines()[-1])[NAME]
    assert diagnosis["status"] == "passed"
    assert set(diagnosis["outputs"]) == {"dq", "dk", "dv"}


@pytest.mark.exhaustive
def test_check_of_a_whole_lesson_passes_only_with_all_of_it(started, capsys):
    hand_in(EXERCISE, EXERCISE.solution, started)
    others = [exercise for exercise in choose_exercises("06") if exercise.name != NAME]
    assert run(capsys, "check", "06", "--folder", started)[0] == (1 if others else 0)
    for exercise in others:
        hand_in(exercise, exercise.solution, started)
    assert run(capsys, "check", "06", "--folder", started)[0] == 0


@pytest.mark.exhaustive
def test_watching_checks_again_what_was_saved_during_the_check_before(started, capsys, monkeypatch):
    states, check = iter([WRONG, EXERCISE.solution]), check_command.check

    def check_and_save(*arguments):
        checked = check(*arguments)
        if text := next(states, ""):
            hand_in(EXERCISE, text, started)
        return checked

    monkeypatch.setattr(check_command, "check", check_and_save)
    monkeypatch.setattr(check_command, "time", SimpleNamespace(sleep=ctrl_c))
    status, out, err = run(capsys, "check", NAME, "--folder", started, "--watch")
    assert (status, err) == (130, "minitransformer check: stopped\n")
    assert out.index("not written yet") < out.index("WRONG") < out.index("passed")


def test_change_of_a_file_is_seen_also_when_an_editor_takes_it_away(tmp_path):
    path = tmp_path / "a.py"
    assert check_command.stamp(path) is None
    path.write_text("1", "utf-8")
    assert check_command.stamp(path) is not None


@pytest.mark.parametrize("name", ["99", "0", "", "nonsense", "1" * 5000])
def test_exercise_that_does_not_exist_is_refused_with_the_lessons(name, mine, capsys):
    assert_refused(run(capsys, "start", name, "--folder", mine), "no exercise", "lessons 01 to 25 have exercises")


@pytest.mark.parametrize("name", ["06_atention_backward", "attention_bakward", "my/06_attention_backwards.py"])
def test_a_misspelt_exercise_is_refused_with_similar_names(name, mine, capsys):
    outcome = run(capsys, "check", name, "--folder", mine)
    assert_refused(outcome, f"there is no exercise {name}; did you mean", "06_attention_backward")


@pytest.mark.parametrize(
    ("name", "exercises"),
    [
        ("06", ["06_attention_steps", "06_attention_backward"]),
        ("6", ["06_attention_steps", "06_attention_backward"]),
        ("06_attention_b", ["06_attention_backward"]),
        ("06_att", ["06_attention_steps", "06_attention_backward"]),
        ("masked", ["07_masked_attention_backward"]),
        ("my_exercises/06_attention_backward.py", ["06_attention_backward"]),
        ("05_attention", ["05_attention"]),
        ("all", [exercise.name for exercise in find_exercises()]),
    ],
)
def test_exercises_are_named_by_lesson_by_the_beginning_of_a_name_and_by_a_file(name, exercises):
    assert [exercise.name for exercise in choose_exercises(name)] == exercises


def test_without_a_name_the_next_open_exercise_is_taken(mine, capsys):
    first, second = find_exercises()[:2]
    assert_refused(run(capsys, "check", "--folder", mine), f"{first.name} is not started: run minitransformer start")
    out = run(capsys, "start", "--folder", mine).out
    assert f"the next open exercise is {first.name}\n" in out
    assert out.endswith("Check your solution with: minitransformer check\n")
    assert "To start another exercise, name it" in run(capsys, "start", "--folder", mine).out
    run(capsys, "start", NAME, "--folder", mine)
    hand_in(first, first.solution, mine)
    assert run(capsys, "check", "--folder", mine).status == 0
    assert f"is {NAME}\n" in run(capsys, "hint", "--folder", mine).out  # started exercises come first
    run(capsys, "solution", NAME, "--give-up", "--folder", mine)
    assert f"next: minitransformer start {second.name}\n" in run(capsys, "progress", "--folder", mine).out
    assert f"is {second.name}\n" in run(capsys, "start", "--folder", mine).out


def test_progress_knows_the_lessons_that_were_run_and_the_sitting(mine, capsys, monkeypatch):
    lessons = find_lessons()
    seen = {lessons[3].number: False, lessons[5].number: True}  # one of them only with --fast
    monkeypatch.setattr(
        "minitransformer.cli.progress.read_record", lambda lesson, fast=False: seen.get(lesson.number) is fast or None
    )
    Workshop(mine).note(SITTING, stations=[1, 2, 4])
    out = run(capsys, "progress", "--folder", mine).out
    assert f"lessons: 2 of {len(lessons)} run  03 05\n" in out
    assert "the sitting: 3 of 10 stations are right\n" in out


@pytest.mark.parametrize("words", [("progress",), ("start", "21"), ("hint", "21"), ("check", NAME)])
def test_no_line_is_wider_than_60_columns(words, started, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    hand_in(EXERCISE, WRONG, started)
    Workshop(started).note(NAME, tries=12)
    out = run(capsys, *words, "--folder", started).out
    lines = [line for line in out.replace(str(started), "").splitlines() if "minitransformer " not in line]
    assert [line for line in lines if len(line) > 60] == []


def test_without_a_name_and_with_nothing_open_it_is_said(mine, capsys):
    Workshop(mine).note(EXERCISE.name)  # makes the folder
    notes = {exercise.name: {"passed": True} for exercise in find_exercises()}
    (mine / "progress.json").write_text(json.dumps(notes), "utf-8")
    assert_refused(run(capsys, "hint", "--folder", mine), "no exercise is open any more")
    assert "next:" not in run(capsys, "progress", "--folder", mine).out


@pytest.mark.exhaustive
def test_check_all_is_a_table_of_what_was_started(started, capsys):
    others = choose_exercises("02")[:2]
    hand_in(others[0], others[0].solution, started)
    hand_in(others[1], others[1].solution.replace("return ", "return 3 * "), started)
    status, out, err = run(capsys, "check", "all", "--folder", started, "--json")
    assert (status, err) == (1, "")
    table, rows = out.rsplit("\n", 2)[0], json.loads(out.splitlines()[-1])
    assert [line.split(maxsplit=1) for line in table.splitlines()[:3]] == [
        [others[0].name, "passed"],
        [others[1].name, f"WRONG: {', '.join(task.function for task in others[1].tasks)}"],
        [NAME, "not written yet: attention_backward"],
    ]
    assert "1 of 3 started exercises pass" in table
    assert list(rows) == [others[0].name, others[1].name, NAME]
    hand_in(EXERCISE, EXERCISE.solution, started)
    hand_in(others[1], others[1].solution, started)
    assert run(capsys, "check", "all", "--folder", started).status == 0


def test_check_all_without_any_and_hints_and_solutions_of_all_are_refused(mine, capsys):
    assert_refused(run(capsys, "check", "all", "--folder", mine), "no exercise is started: run minitransformer start")
    for command in ("hint", "solution"):
        assert_refused(run(capsys, command, "all", "--folder", mine), f"{command} 06", "all is not allowed")


def test_hints_come_one_by_one(mine, capsys):
    outs = [" ".join(run(capsys, "hint", NAME, "--folder", mine)[1].split()) for _ in range(4)]
    for count, out in zip((1, 2, 3, 3), outs, strict=True):
        assert f"{count} of 3 hints" in out
        shown = [" ".join(hint.split()) in out for hint in EXERCISE.hints]
        assert shown == [True] * count + [False] * (3 - count)


@pytest.mark.exhaustive
def test_progress_shows_the_board(started, capsys):
    hand_in(EXERCISE, EXERCISE.solution, started)
    run(capsys, "check", NAME, "--folder", started)
    status, out, _ = run(capsys, "progress", "--folder", started, "--json")
    assert status == 0
    rows = {row["exercise"]: row for row in json.loads(out.splitlines()[-1])}
    assert (rows[NAME]["state"], rows[NAME]["tries"]) == ("passed", 1)
    assert f"1 of {len(rows)} passed" in out
    assert {row["state"] for name, row in rows.items() if name != NAME} <= {"not started"}


def test_progress_asks_what_was_learned_and_answers_if_asked_to(mine, capsys, monkeypatch):
    due = [("07", "(05) Why is it divided by √D?", "Because its variance is D.")]
    monkeypatch.setattr("minitransformer.cli.progress.due_questions", lambda now: due)
    out = run(capsys, "progress", "--folder", mine).out
    assert "(05) Why is it divided by √D? [asked in lesson 07]" in out
    assert "Because" not in out
    assert "Because its variance is D." in run(capsys, "progress", "--folder", mine, "--answers").out


@pytest.mark.exhaustive
def test_solution_is_shown_after_passing_or_giving_up(started, capsys):
    status, out, _ = run(capsys, "solution", NAME, "--folder", started)
    assert (status, "not passed yet" in out) == (1, True)
    assert "def attention_backward" not in out
    status, out, _ = run(capsys, "solution", NAME, "--folder", started, "--give-up")
    assert (status, EXERCISE.solution.strip() in out) == (0, True)
    assert "gave up" in run(capsys, "progress", "--folder", started)[1]
    hand_in(EXERCISE, EXERCISE.solution, started)
    run(capsys, "check", NAME, "--folder", started)
    assert "gave up" not in run(capsys, "progress", "--folder", started)[1]
    assert run(capsys, "solution", NAME, "--folder", started)[0] == 0


def test_solution_of_what_was_not_started_is_not_shown(mine, capsys):
    status, out, _ = run(capsys, "solution", NAME, "--folder", mine)
    assert (status, "not started yet" in out) == (1, True)
