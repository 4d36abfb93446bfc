"""`minitransformer sit`: its copy, the editor, and what is said after each save."""

import json
import sys

import pytest

from minitransformer.cli import sit as command
from minitransformer.course import FOLDER
from tests.cli.run import assert_refused, run
from tests.lessons.sitting_answers import answers, written

EDITOR = """\
import pathlib, sys
path = pathlib.Path(sys.argv[-1])
path.write_text(path.read_text("utf-8").replace("dx = ...\\n    return dx\\n", "dx = dsum\\n    return dx\\n"), "utf-8")
"""
FINALE = "if finished:\n    train"  # takes seconds


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The reader's folder; there is no editor."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return tmp_path / "mine"


def save(mine, text):
    mine.mkdir(exist_ok=True)
    (mine / "one_sitting.py").write_text(text.replace(FINALE, "if False:\n    train"), "utf-8")


def test_the_file_is_copied_once_and_the_first_station_is_shown_with_its_numbers(mine, capsys):
    status, out, err = run(capsys, "sit", "--once", "--folder", mine)
    assert (status, err) == (1, "")
    assert f"read and write in {mine / 'one_sitting.py'}" in out
    assert (mine / "one_sitting.py").read_bytes() == (FOLDER / "one_sitting.py").read_bytes()
    assert "[..........] 0 of 10 stations are right" in out
    assert out.index("row p→o") < out.index("station 1 of 10, softmax and cross-entropy: not written yet")
    assert "station 2" not in out
    (mine / "one_sitting.py").write_text("1 +", "utf-8")
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    assert status == 1
    assert "SyntaxError" in out


def test_a_station_that_is_skipped_is_shown_until_it_is_right_and_then_what_comes_next(mine, capsys, monkeypatch):
    done = answers("arrays")
    wrong = {**done, "loss_backward": done["loss_backward"].replace(" / len(p)", "")}
    states = iter([{name: wrong[name] for name in ("loss_backward", "output_backward")}, done])

    def wait(paths):
        try:
            save(mine, written(next(states)))
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(command, "wait_for_change", wait)
    status, out, err = run(capsys, "sit", "--folder", mine)
    assert (status, err) == (130, "minitransformer sit: stopped\n")
    assert "open it in a second window, with your editor" in out
    first, second, third = out.split(" stations are right")[:3]
    assert first.endswith("[..........] 0 of 10")
    assert second.endswith("[.#........] 1 of 10")
    assert "station 2 of 10, the output matrix: ok" in second
    assert "= it is not divided by the number of rows" in third
    assert third.count("station 2 of 10") == 0, "it was right before"
    assert third.endswith("[##########] 10 of 10")
    assert "all 826 gradients are right" in out


def test_an_editor_with_a_window_is_opened_and_what_it_saves_is_judged(mine, capsys, monkeypatch, tmp_path):
    script = tmp_path / "editor.py"
    script.write_text(EDITOR, "utf-8")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    wait_for_change, waits = command.wait_for_change, []

    def wait(paths):
        if waits or "dx = dsum\n" in paths[0].read_text("utf-8"):
            raise KeyboardInterrupt
        waits.append(paths)
        wait_for_change(paths, pause=0.05)

    monkeypatch.setattr(command, "wait_for_change", wait)
    status, out, _ = run(capsys, "sit", "--folder", mine)
    assert status == 130
    assert "second window" not in out
    assert "dx = dsum\n" in (mine / "one_sitting.py").read_text("utf-8")


@pytest.mark.parametrize(("editor", "said"), [("vim -R", "with vim -R"), ("no-such-editor", "cannot be started")])
def test_an_editor_of_the_terminal_is_left_to_another_window_and_a_missing_one_is_said(editor, said, mine, capsys):
    mine.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISUAL", editor)
        command.open_editor(mine / "one_sitting.py")
    out = capsys.readouterr().out
    assert said in out
    assert "open it in a second window" in out


def test_a_file_that_is_right_ends_with_status_0_and_json_says_which_stations_are(mine, capsys):
    save(mine, written(answers("loops")))
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine, "--json")
    assert status == 0
    assert json.loads(out.splitlines()[-1]) == {"path": str(mine / "one_sitting.py"), "right": [True] * 10}


@pytest.mark.parametrize("line", ["while True: pass", "while True: print('x' * 1000)", "import sys; sys.exit(3)"])
def test_a_file_that_hangs_prints_without_end_or_exits_is_stopped(line, mine, capsys, monkeypatch):
    monkeypatch.setattr(command, "LIMIT", 2)
    save(mine, f"print('here')\n{line}\n")
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    assert status == 1
    assert ("is there a loop that never ends?" in out) == ("while" in line)


def test_a_file_in_the_place_of_the_folder_is_refused(mine, capsys):
    mine.write_text("", "utf-8")
    assert_refused(run(capsys, "sit", "--folder", mine), "is a file, not a folder for your exercises")
