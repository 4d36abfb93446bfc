"""Commands and scripts end promptly on Ctrl-C and SIGTERM, with all their children and with one line."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from minitransformer.course import FOLDER
from minitransformer.system import signals
from minitransformer.system.signals import STOPPING, Interruptions
from tests.cli.test_lesson import HEADER
from tests.processes import PROMPT, kill_all, marked_environment, running, wait_until

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
pytestmark = pytest.mark.usefixtures("signals_of_a_terminal")
# a process and its two workers; from Python 3.14 on also the server that forks them, and a tracker of resources
FAMILY = 3 if multiprocessing.get_all_start_methods()[0] == "fork" else 5
IMPORT = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); from support.ending import end_script_in_one_line as end"
ENDING = f"{IMPORT}; end('02_two')"  # a script of a lesson begins with it
environments = {}  # {process id: the environment that `start` has given it}


@pytest.fixture
def start(tmp_path):
    """start(arguments of Python) -> a process in a group of its own, which does not outlive the test."""
    processes = []

    def start_one(*arguments):
        environment = marked_environment()
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        options["env"] = environment
        process = subprocess.Popen([sys.executable, *map(str, arguments)], start_new_session=True, **options)
        processes.append(process)
        environments[process.pid] = environment
        return process

    yield start_one
    for process in processes:
        kill_all(environments[process.pid])
        process.kill()
        process.communicate()


def members(pid):
    """The processes that still run of those that `start` has started, this one and all below it."""
    return running(environments[pid])


def end(process, number, group=False):
    """Send a signal -> what the process prints on stderr until it has ended, with all its children."""
    (os.killpg if group else os.kill)(process.pid, number)
    said = process.communicate(timeout=PROMPT)[1]
    wait_until(lambda: not members(process.pid))
    return said


@linux
@pytest.mark.parametrize(
    ("number", "group"),
    [
        (signal.SIGINT, True),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.exhaustive),
        pytest.param(signal.SIGINT, False, marks=pytest.mark.exhaustive),
    ],
)
def test_lesson_ends_with_the_script_that_it_runs(number, group, start, tmp_path):
    (tmp_path / "lessons").mkdir()
    code = "import time; print('begun', flush=True); time.sleep(60); open('figure', 'w').close()"
    text = HEADER.format(number="00", word="one", time="3 s (fast: 1 s)", needs="none", code=code)
    (tmp_path / "lessons" / "00_one.py").write_text(text, "utf-8")
    command = "import pathlib, sys; from minitransformer import course; from minitransformer.cli import main\n"
    command += "course.FOLDER = pathlib.Path('lessons').resolve(); sys.exit(main())"
    process = start("-c", command, "lesson", "00")
    while (line := process.stdout.readline()) != "begun\n":
        assert line, "it ended before the lesson began"
    assert end(process, number, group) == "minitransformer lesson: stopped\n"
    assert process.returncode == -number
    assert not (tmp_path / "figure").exists()


@linux
@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, True), pytest.param(signal.SIGTERM, False, marks=pytest.mark.exhaustive)],
)
def test_lengths_ends_with_its_workers(number, group, start):
    process = start("-m", "minitransformer", "experiment", "lengths", "--jobs", "2")
    wait_until(lambda: len(members(process.pid)) == FAMILY)
    assert end(process, number, group) == "minitransformer experiment: stopped\n"
    assert process.returncode == -number


@posix
@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_local_server_of_the_explorer_ends_with_one_line(number, start):
    process = start("-m", "minitransformer", "explore", "--no-browser")
    while "http://127.0.0.1:" not in process.stdout.readline():
        pass
    os.kill(process.pid, number)
    assert process.communicate(timeout=PROMPT)[1] == "minitransformer explore: stopped\n"
    assert process.returncode == -number


@linux
@pytest.mark.exhaustive
def test_workers_end_with_a_parent_that_is_killed(start):
    quiet = "-W", "ignore:resource_tracker"  # which is Python's, and says that it removes what the parent has left
    process = start(*quiet, "-m", "minitransformer", "experiment", "lengths", "--jobs", "2")
    wait_until(lambda: len(members(process.pid)) == FAMILY)
    assert end(process, signal.SIGKILL) == ""


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_script_ends_with_one_line(number, start):
    code = f"import time; {ENDING}"
    process = start("-c", f"{code}; print('begun', flush=True); time.sleep(60)")
    process.stdout.readline()
    os.kill(process.pid, number)
    assert process.communicate(timeout=PROMPT)[1] == "02_two: stopped\n"
    assert process.returncode == -number


@posix
def test_process_in_the_background_ignores_ctrl_c_and_ends_on_sigterm(start):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the process inherits, as after `nohup` and `&`
    code = f"import time; {ENDING}"
    process = start(
        "-c", f"{code}; print('begun', flush=True); time.sleep(0.2); print('on', flush=True); time.sleep(60)"
    )
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "on\n"
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=PROMPT)[1] == "02_two: stopped\n"


def test_script_without_enough_memory_says_so_in_one_line(start):
    code = ENDING
    process = start("-c", f"{code}; raise MemoryError('Unable to allocate 7 TiB')")
    assert process.communicate()[1] == "02_two: not enough memory: Unable to allocate 7 TiB\n"
    assert process.returncode == 1


@posix
def test_script_ends_quietly_when_nobody_reads_what_it_prints(start):
    code = ENDING
    process = start("-c", f"{code}\nwhile True: print('a line')")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(PROMPT) == 141


@pytest.mark.parametrize("number", [signal.SIGINT, *STOPPING])
def test_both_signals_raise_the_same_exception_inside_the_block_and_not_after_it(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), Interruptions() as interruptions:
        signal.raise_signal(number)
    assert interruptions.received == number
    assert signal.getsignal(number) is before


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, *STOPPING])
def test_signal_whose_exception_is_lost_is_repeated(number, monkeypatch):
    monkeypatch.setattr(signals, "REPEAT", 0.05)
    try:
        with Interruptions() as interruptions:
            with contextlib.suppress(BaseException):  # as some libraries do
                signal.raise_signal(number)
            time.sleep(PROMPT)
            pytest.fail("it was not repeated")
    except KeyboardInterrupt:
        assert interruptions.received == number
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
@pytest.mark.parametrize("number", STOPPING)
def test_signal_that_the_program_ignores_or_handles_is_left_alone(number, handler):
    before = signal.signal(number, handler)  # SIGHUP is ignored after `nohup`
    try:
        with Interruptions():
            signal.raise_signal(number)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_threads_that_cannot_handle_signals_do_without():
    def work():
        with Interruptions():
            done.append(signal.getsignal(signal.SIGTERM))

    done = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.SIG_DFL]
