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
DAEMON = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n"
DAEMON += "    os._exit(0)\n"
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
        run_child(python(f"{DAEMON}time.sleep(60)"), seconds=0.5, patience=0.0, env=environment)
    assert time.monotonic() - began < 30
    assert not running(environment)


@linux
def test_daemon_ends_with_the_child_that_started_it(environment):
    assert run_child(python(DAEMON), env=environment) == 0
    assert not running(environment)


def test_head_keeps_the_beginning_and_ends_who_prints_more():
    with Head(1000) as out:
        status = run_child(python("while True: print('x' * 99)"), 30.0, stdout=out, stderr=subprocess.DEVNULL)
    assert status != 0
    assert out.kept == b"".join([b"x" * 99 + b"\n"] * 10)


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGQUIT, marks=pytest.mark.exhaustive)])
def test_child_ends_with_a_parent_that_is_killed(number, environment, tmp_path):
    code = f"from minitransformer.system.children import *\nrun_child([sys.executable, '-c', {DAEMON + STUBBORN!r}])"
    parent = subprocess.Popen(python(code), cwd=tmp_path, env=environment)
    wait_until((tmp_path / "begun").exists)
    parent.send_signal(number)
    assert parent.wait(10) == -number
    wait_until(lambda: not running(environment))


@linux
def test_child_ends_with_its_minder(environment, tmp_path):
    code = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    assert run_child(python(code), env=environment) == -signal.SIGKILL
    wait_until(lambda: not running(environment))


@posix
def test_limits_hold_for_the_child_and_not_for_this_process():
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE))"
    assert last_line(python(code), limits={"RLIMIT_FSIZE": 12345}) == "(12345, 12345)"
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before


@posix
def test_lower_limit_of_the_system_stays():
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 5000))\n"
    code += "from minitransformer.system.children import *\ninner = 'import resource; "
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


def test_windows_has_no_minder_and_ends_the_program_itself(monkeypatch, tmp_path):
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
    assert set(options) == {"cwd"}
    assert child.returncode == -signal.SIGKILL
