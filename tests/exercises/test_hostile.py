"""Whatever a learner's file does, `minitransformer check` says one thing about it, and nothing is left afterwards."""

import signal
import sys

import pytest

from tests.exercises.hostile import DAEMON, GUARD, HOSTILE, QUICK, SLEEP, Hostile, attempt, left_in, start, write
from tests.processes import kill_all, marked_environment, running, wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="daemons are caught in Linux only")
PEAK = 100e6  # bytes of the checker, which needs about 46 MB
LONGEST = 1500  # characters of all that is printed
every_file = pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in GUARD),
        *(pytest.param(name, marks=pytest.mark.weekly) for name in HOSTILE if name not in (*QUICK, *GUARD)),
    ],
)


@every_file
def test_hostile_file_gets_one_clue_and_leaves_nothing(name, tmp_path):
    hostile = HOSTILE[name]
    found = attempt(hostile, tmp_path)
    assert hostile.said in found.said
    assert found.status == (1 if "WRONG" in found.said else 0)
    assert found.said.count("WRONG") <= 1
    assert "Traceback" not in found.said
    assert len(found.said) < LONGEST or name == "print without end"
    assert found.left == []
    assert 0 < found.peak < PEAK
    assert found.file or name == "its own file removed"


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (signal.SIGTERM, signal.SIGKILL))],
)
def test_checker_that_is_ended_takes_all_processes_with_it(number, tmp_path):
    environment = marked_environment()
    loop = Hostile("", f"{DAEMON}daemon(lambda: {SLEEP})\nos.mkdir('begun')\n{SLEEP}")
    process = start(write(loop, tmp_path / "mine"), tmp_path, environment)
    try:
        wait_until(lambda: list((tmp_path / "temporary").glob("*/scratch/begun")))
        wait_until(lambda: len(running(environment)) == 4)  # the checker, its minder, the check and the daemon
        process.send_signal(number)
        said = process.communicate(timeout=10)[0].decode()
        wait_until(lambda: not running(environment))
    finally:
        kill_all(environment)
        process.communicate()
    assert process.returncode in (-number, 128 + number)
    if number != signal.SIGKILL:  # which leaves no time for the folder
        assert said == "minitransformer check: stopped\n"
        assert left_in(tmp_path, environment) == []
