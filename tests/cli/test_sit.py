"""`minitransformer sit`: its copy, the editor, and what is said after each save."""

import json
import os
import re
import sys
import time
from types import SimpleNamespace

import pytest

from minitransformer.cli import check
from minitransformer.cli import sit as command
from minitransformer.course import FOLDER
from tests.cli.run import assert_refused, ctrl_c, run
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
    assert "[..........] 0 of 10 stations are right" in out
    assert out.index("row p→o") < out.index("station 1 of 10, softmax and cross-entropy: not written yet")
    assert "station 2" not in out


@pytest.mark.exhaustive
def test_the_links_of_the_copy_lead_to_the_lessons_and_name_cells_of_the_explorer(mine, capsys):
    run(capsys, "sit", "--once", "--folder", mine)
    text = (mine / "one_sitting.py").read_text("utf-8")
    local = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert len(local) > 10
    assert all((mine / link.replace("../lessons", str(FOLDER))).exists() for link in local), local
    assert text.count("In the explorer (`minitransformer explore`): ") == 10
    assert "In the explorer (`minitransformer explore`): output.dz[1,3]." in text


@pytest.mark.parametrize(("text", "said"), [("", "the file is empty"), ("if 1:\nx", "cannot be read yet:\n.*line 2")])
def test_a_file_that_is_empty_or_cannot_be_read_is_said_to_be(text, said, mine, capsys):
    save(mine, text)
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    assert status == 1
    assert "0 of 10 stations are right" in out
    assert re.search(said, out)


FFN, RESIDUAL = 'feed_forward("decoder.ffn", dsum)))', "judge(residual_backward)\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("old", "new", "right", "said"),
    [
        ("judge(norm_backward)\n", "", 9, "station 3 of 10: the file does not judge it"),
        ("return dsum + dsub", "import sys; sys.exit()", 8, "residual_backward: SystemExit in line"),
        ("def mix_backward", "def mix_back", 9, "no function mix_backward found. Keep the names"),
        (FFN, FFN.replace("dsum", "2 * dsum"), 10, "the first wrong one is decoder.ffn.W_2: look there"),
        (RESIDUAL, f"{RESIDUAL}1 / 0\n", 5, "ZeroDivisionError"),
    ],
)
def test_the_status_is_0_only_if_ten_stations_and_the_whole_are_right(old, new, right, said, mine, capsys):
    text = written(answers("arrays"))
    assert old in text
    save(mine, text.replace(old, new, 1))
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine, "--json")
    assert status == 1
    assert f"{right} of 10 stations are right" in out
    assert said in " ".join(out.split())
    found = json.loads(out.splitlines()[-1])
    assert (sum(found["right"]), len(found["right"]), found["whole"]) == (right, 10, False)


@pytest.mark.exhaustive
def test_the_line_after_which_the_file_stopped_is_said(mine, capsys):
    text = written(answers("arrays")).replace("judge(residual_backward)\n", "judge(residual_backward)\nsys.exit()\n")
    save(mine, text)
    _, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    line = text.splitlines().index("judge(residual_backward)") + 1
    assert f"the file stopped after station 5, judged in line {line}, and never came to judge_all" in out


@pytest.mark.exhaustive
def test_at_the_start_what_was_right_before_takes_one_line_but_for_the_last(mine, capsys):
    save(mine, written({name: answers("arrays")[name] for name in ("loss_backward", "output_backward")}))
    _, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    assert "station 1 of 10, softmax and cross-entropy: ok\n\nstation 2 of 10, the output matrix: ok\n    dy ok" in out


def sit_through(mine, capsys, monkeypatch, *texts):
    """Save these texts one after another while `sit` looks on -> what it says after each, and before the first."""
    states = iter(texts)

    def wait(before):
        try:
            save(mine, next(states))
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(command, "wait_for_change", wait)
    status, out, err = run(capsys, "sit", "--folder", mine)
    assert (status, err) == (130, "minitransformer sit: stopped\n")
    assert "open it in a second window, with your editor" in out
    return out.split("saved; judging ...")


DONE = answers("arrays")
TWO_WRONG = {
    "loss_backward": DONE["loss_backward"].replace(" / len(p)", ""),
    "output_backward": DONE["output_backward"],
    "relu_backward": DONE["relu_backward"].replace("a > 0", "a < 0"),
}
OF_STATION_1 = "= the loss is a mean, but its gradient is that of a sum"
FIRST_HALF = list(DONE)[: list(DONE).index("residual_backward") + 1]


def test_two_stations_that_are_wrong_at_once_are_both_told_and_later_only_what_has_changed(mine, capsys, monkeypatch):
    assert TWO_WRONG["relu_backward"] != DONE["relu_backward"]
    one_more = {**TWO_WRONG, "residual_backward": DONE["residual_backward"].replace("dsum + dsub", "dsum")}
    first, second, third, fourth = sit_through(
        mine, capsys, monkeypatch, written(TWO_WRONG), written(one_more), written(one_more) + "\n# a note\n"
    )
    assert "[..........] 0 of 10" in first
    assert "[.#........] 1 of 10" in second
    assert second.index("station 2 of 10, the output matrix: ok") < second.index(OF_STATION_1)
    assert OF_STATION_1 in second
    assert second.index(OF_STATION_1) < second.index("station 4 of 10, the feed-forward network: WRONG")
    assert "station 5 of 10, the residual: WRONG" in third
    assert re.findall(r"station (\d+) of 10", third) == ["5"], "the others are as they were"
    assert re.findall(r"station (\d+) of 10", fourth) == ["1"], "nothing has changed: the first that is not right"


@pytest.mark.exhaustive
def test_each_hint_is_heard_once_whichever_station_is_open(mine, capsys, monkeypatch):
    text = written({name: DONE[name] for name in ("loss_backward",)})
    far = text.replace("judge(softmax_backward)\n", "judge(softmax_backward)\nhint(softmax_backward)\n")
    two = far.replace("judge(norm_backward)\n", "hint(norm_backward)\njudge(norm_backward)\n")
    more = two.replace("dx_hat = ...", "dx_hat = dy").replace("hint(norm", "hint(norm_backward)\nhint(norm", 1)
    _, first, second, third, fourth = sit_through(mine, capsys, monkeypatch, far, two, two + "\n# a note\n", more)
    assert "hint 1 of 2 for softmax_backward" in first
    assert "hint 1 of 3 for norm_backward" in second
    assert "for softmax_backward" not in second
    assert "station" not in second.replace("stations are right", "")
    assert "hint" not in third
    assert "station 3 of 10" in fourth
    assert re.findall(r"hint (\d) of 3 for norm_backward", fourth) == ["2"], "not a second time among the numbers"


def test_a_syntax_error_keeps_the_count_and_the_next_day_too(mine, capsys, monkeypatch):
    right = written({name: DONE[name] for name in ("loss_backward", "output_backward")})
    broken = right.replace("def norm_backward(", "def norm_backward((")
    _, first, second, third = sit_through(mine, capsys, monkeypatch, right, broken, right)
    assert "[##........] 2 of 10" in first
    assert "[##........] 2 of 10" in second
    assert "the file cannot be read yet:" in second
    assert "SyntaxError" in second
    assert re.findall(r"station (\d+) of 10", third) == ["3"], "the first two are as they were"
    save(mine, broken)
    assert "[##........] 2 of 10" in run(capsys, "sit", "--once", "--folder", mine).out


@pytest.mark.exhaustive
def test_the_first_five_stations_have_an_ending_that_is_said_once(mine, capsys, monkeypatch):
    half = written({name: DONE[name] for name in FIRST_HALF})
    _, first, second = sit_through(mine, capsys, monkeypatch, half, half + "\n# a note\n")
    assert first.index("half done: 134 of the 826 gradients are right") < first.index("[#####.....] 5 of 10")
    assert "half done" not in second
    four = written({name: DONE[name] for name in FIRST_HALF[1:]})
    save(mine, four)
    assert "half done" not in run(capsys, "sit", "--once", "--folder", mine).out


@pytest.mark.exhaustive
def test_a_station_that_is_skipped_is_shown_until_it_is_right_and_then_what_comes_next(mine, capsys, monkeypatch):
    _, second, third = sit_through(mine, capsys, monkeypatch, written(TWO_WRONG), written(DONE))
    assert "[.#........] 1 of 10" in second
    assert third.count("station 2 of 10") == 0, "it was right before"
    assert "[##########] 10 of 10" in third
    assert "all 826 gradients are right" in third


def test_what_is_saved_during_the_judging_is_judged_next(mine, capsys, monkeypatch):
    def judge(path, look):
        os.utime(path, (1, 1))  # a save, the first time
        return look

    monkeypatch.setattr(command, "judge", judge)
    monkeypatch.setattr(check, "time", SimpleNamespace(sleep=ctrl_c))
    status, out, _ = run(capsys, "sit", "--folder", mine)
    assert (status, out.count("saved; judging ...")) == (130, 1)


def test_the_time_for_people_to_whom_this_is_new_is_said(capsys):
    for text in (run(capsys, "sit", "--help").out, (FOLDER / "one_sitting.py").read_text("utf-8")):
        assert re.search(r"150 minutes if this is new to (#\s+)?you, best on\s+(#\s+)?two evenings", text)


@pytest.mark.exhaustive
def test_an_editor_with_a_window_is_opened_and_what_it_saves_is_judged(mine, capsys, monkeypatch, tmp_path):
    script = tmp_path / "editor.py"
    script.write_text(EDITOR, "utf-8")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")

    def sleep(seconds):
        if "dx = dsum\n" in (mine / "one_sitting.py").read_text("utf-8"):
            raise KeyboardInterrupt  # it was judged: nothing has been saved since
        time.sleep(0.05)

    monkeypatch.setattr(check, "time", SimpleNamespace(sleep=sleep))
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
    right = {"path": str(mine / "one_sitting.py"), "right": [True] * 10, "whole": True}
    assert (status, json.loads(out.splitlines()[-1])) == (0, right)


@pytest.mark.parametrize(
    "line",
    [
        *(pytest.param(f"while True: {what}", marks=pytest.mark.exhaustive) for what in ("pass", "print('x' * 1000)")),
        "import sys; sys.exit(3)",
    ],
)
def test_a_file_that_hangs_prints_without_end_or_exits_is_stopped(line, mine, capsys, monkeypatch):
    limit = 1 if "pass" in line else 20  # seconds; what floods or exits needs no limit
    monkeypatch.setattr(command, "LIMIT", limit)
    save(mine, f"print('here')\n{line}\n")
    status, out, _ = run(capsys, "sit", "--once", "--folder", mine)
    assert status == 1
    said = re.findall("stopped after (.*) is there a loop that never ends", " ".join(out.split()))
    flood = "200,000 bytes of output: is there still a print in a function, or"
    assert said == ([] if "exit" in line else [flood] if "print" in line else ["1 s:"])


def test_a_file_in_the_place_of_the_folder_is_refused(mine, capsys):
    mine.write_text("", "utf-8")
    assert_refused(run(capsys, "sit", "--folder", mine), "is a file, not a folder for your exercises")
