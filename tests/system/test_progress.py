"""Progress: a bar on a terminal, and lines where there is none."""

import os
import struct
import subprocess
import sys

import pytest

from minitransformer.system import progress
from minitransformer.system.progress import tqdm

COUNT_TO_THREE = (
    "from minitransformer.system.progress import tqdm\nfor i in tqdm([1, 2, 3], unit='egg'): tqdm.write(f'<{i}>')"
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on only if told to: clock(seconds)."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def go_on(seconds):
        now[0] += seconds

    return go_on


def test_without_a_terminal_a_line_is_printed_every_few_seconds(clock, capsys):
    for _ in tqdm(range(7), unit="egg"):
        clock(2)
    assert capsys.readouterr() == ("", "egg 3 of 7, 00:06, 00:08 left\negg 6 of 7, 00:12, 00:02 left\n")


def test_lines_get_rarer_in_a_long_run(clock, capsys):
    bar = tqdm(total=36000)
    for _ in range(36000):
        clock(1)
        bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert 30 < len(lines) < 100
    assert lines[0] == "step 5 of 36,000, 00:05, 9:59:55 left"


def test_line_holds_what_was_said_about_the_step_and_counts_from_a_resumed_one(clock, capsys):
    with tqdm(total=100, initial=40, unit="step", desc="copy") as bar:
        clock(10)
        bar.set_postfix_str("loss 0.31")
        bar.update(10)
    assert capsys.readouterr().err == "copy: step 50 of 100, 00:10, 00:50 left, loss 0.31\n"


def test_a_disabled_bar_prints_nothing(clock, capsys):
    bar = tqdm(total=3, disable=True)
    clock(100)
    bar.update()
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_there_is_a_bar_of_its_width():
    import fcntl
    import pty
    import termios

    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))  # rows, columns
    done = subprocess.run([sys.executable, "-c", COUNT_TO_THREE], stderr=end, stdout=subprocess.PIPE, text=True)
    os.close(end)
    drawn = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert done.stdout == "<1>\n<2>\n<3>\n"
    assert "3/3" in drawn
    assert max(len(line) for line in drawn.split("\r")) <= 41  # with its line break


def test_lines_replace_the_bar_where_tqdm_is_not_installed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(tqdm(range(3)), tqdm)
    tqdm.write("a row")
    assert capsys.readouterr().out == "a row\n"
