"""Programs in processes of their own end with all that they have started, and say how they ended."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from minitransformer.system import children
from minitransformer.system.children import KEPT, Head, Tail, last_line, run_child
from tests.processes import kill_all, marked_environment, running, wait_until

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
FORGOTTEN = "import os, signal, time\nif os.fork() == 0:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FORGOTTEN += "    if os.fork() == 0: time.sleep(60)\n    os._exit(0)\n"
STUBBORN = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.mkdir('begun'); time.sleep(60)"
CLEANING = "import os, signal, time; signal.signal(signal.SIGTERM, lambda *_: (os.mkdir('cleaned'), os._exit(0)))\n"
CLEANING += "os.mkdir('begun'); time.sleep(60)"
pytestmark = pytest.mark.usefixtures("signals_of_a_terminal")


@pytest.fixture
def environment():
    """A marked environment, whose processes do not outlive the test."""
    made = marked_environment()
    yield made
    kill_all(made)


def python(code):
    """The command that runs it."""
    return [sys.executable, "-c", code]


def interrupt_when(path):
    """Press Ctrl-C as soon as there is a file of this name."""
    threading.Thread(target=lambda: (wait_until(path.exists), os.kill(os.getpid(), signal.SIGINT))).start()


@pytest.mark.parametrize("status", [0, 7])
def test_status_of_a_child_is_returned(status):
    assert run_child(python(f"raise SystemExit({status})")) == status


@posix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_signal_that_ends_a_child_is_returned(number):
    code = f"import os, signal\nsignal.pthread_sigmask(signal.SIG_UNBLOCK, [{number:d}])\n"
    code += f"if {number:d} != signal.SIGKILL: signal.signal({number:d}, signal.SIG_DFL)\n"
    assert run_child(python(f"{code}os.kill(os.getpid(), {number:d})")) == -number


@linux
def test_child_that_does_not_end_is_killed(monkeypatch, tmp_path, environment):
    interrupt_when(tmp_path / "begun")
    with pytest.raises(KeyboardInterrupt):
        run_child(python(STUBBORN), patience=0.1, cwd=tmp_path, env=environment)
    assert not running(environment)


@posix
def test_child_has_time_to_clean_up(tmp_path):
    interrupt_when(tmp_path / "begun")
    with pytest.raises(KeyboardInterrupt):
        run_child(python(CLEANING), patience=5.0, cwd=tmp_path)
    assert (tmp_path / "cleaned").exists()


@linux
def test_child_is_stopped_after_its_time(environment):
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(python(f"{FORGOTTEN}time.sleep(60)"), seconds=0.5, patience=0.0, env=environment)
    assert time.monotonic() - began < 30
    assert not running(environment)


@linux
def test_processes_that_a_child_forgets_end_with_it(environment):
    assert run_child(python(FORGOTTEN), env=environment) == 0
    wait_until(lambda: not running(environment))


@linux
def test_second_interruption_leaves_nothing_behind(tmp_path, environment):
    def interrupt_twice():
        for name in ("begun", "told"):
            wait_until((tmp_path / name).exists)
            os.kill(os.getpid(), signal.SIGINT)

    code = "import os, signal, time; signal.signal(signal.SIGTERM, lambda *_: os.mkdir('told')); os.mkdir('begun')\n"
    threading.Thread(target=interrupt_twice).start()
    with pytest.raises(KeyboardInterrupt):
        run_child(python(code + "while True: time.sleep(1)"), patience=60.0, cwd=tmp_path, env=environment)
    wait_until(lambda: not running(environment))


def test_head_keeps_the_beginning_and_ends_who_prints_more():
    with Head(1000) as out:
        status = run_child(python("while True: print('x' * 99)"), 30.0, stdout=out, stderr=subprocess.DEVNULL)
    assert status != 0
    assert out.kept == b"".join([b"x" * 99 + b"\n"] * 10)


@linux
def test_limits_hold_for_the_child_and_not_for_this_process():
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    code = "import resource, time\nwhile (now := resource.getrlimit(resource.RLIMIT_FSIZE))[0] < 0: time.sleep(0.01)\n"
    code += "print(now)"
    assert last_line(python(code), limits={"RLIMIT_FSIZE": 12345}) == "(12345, 12345)"
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before


@linux
def test_lower_limit_of_the_system_stays():
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 5000))\n"
    code += "from minitransformer.system.children import *\ninner = 'import resource, time; time.sleep(0.5); "
    code += "print(resource.getrlimit(resource.RLIMIT_FSIZE))'\n"
    code += "print(*[last_line([sys.executable, '-c', inner], limits={'RLIMIT_FSIZE': n}) for n in (3000, 500)])"
    assert last_line(python(code)) == "(1000, 5000) (500, 500)"


def test_end_of_what_a_child_prints_is_kept():
    code = "import sys\nfor i in range(20_000): print(i)\nprint('the end', file=sys.stderr)"
    with Tail() as out, Tail() as err:
        assert run_child(python(code), stdout=out, stderr=err) == 0
    assert (out.last_line, err.last_line) == ("19999", "the end")
    assert len(out.kept) == KEPT


def test_failure_is_reported_with_its_last_line():
    with pytest.raises(RuntimeError, match="ended with status 3: too little"):
        last_line(python("import sys; print('much\\ntoo little', file=sys.stderr); sys.exit(3)"))


def test_tail_of_a_silent_child_is_empty():
    with Tail() as tail:
        pass
    assert tail.last_line == ""


def test_windows_has_no_sessions_and_ends_the_program_itself(monkeypatch, tmp_path):
    started = []

    def start(command, **options):
        started.append((command, options, real(command, **options)))
        return started[-1][2]

    real = subprocess.Popen
    monkeypatch.setattr(children.sys, "platform", "win32")
    monkeypatch.setattr(children.subprocess, "Popen", start)
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(python("import time; time.sleep(60)"), seconds=0.2, cwd=tmp_path)
    ((command, options, child),) = started
    assert command == python("import time; time.sleep(60)")
    assert options == {"cwd": tmp_path, "start_new_session": False}
    assert child.returncode == -signal.SIGTERM  # which is the same there
