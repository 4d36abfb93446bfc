"""Whatever happens in a learner's file by accident, the check says one thing about it, and nothing is left afterwards.

Every bomb is bounded, so that a check that fails here does no harm: at most 33 processes, 2 GB, 300 MB on the disk.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest

from minitransformer.exercises import check, find_exercise
from minitransformer.exercises.runner import LIMITS, MOST, read_answer
from tests.exercises.answers import hand_in
from tests.processes import NAME, kill_all, marked_environment, running, wait_until

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there are no limits elsewhere")
EXERCISE = find_exercise("02_relu_backward")
LIMIT = 2.5  # seconds for a file that never ends, on a busy machine
STOPPED = f"it was stopped after {LIMIT} s: is there a loop that never ends?"
ENDED = "its process ended {} before the check was done."
FAILED = ENDED.format("with status 1") + " "
IMPORTS = "import atexit, json, mmap, os, shutil, signal, subprocess, sys, tempfile, threading, time\n"
SLEEP = "time.sleep(600)"
FORGOTTEN = f"""
me = os.getpid()
for _ in range(5): os.fork()
if os.getpid() != me:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    {SLEEP}
subprocess.Popen(['sleep', '600'])
"""
HARMLESS = f"""
for _ in range(50): threading.Thread(target=lambda: {SLEEP}).start()
print("much " * 1_000_000)
os.write(1, b"past sys.stdout" * 10**5)
os.write(2, b"past sys.stderr" * 10**5)
sys.stdin.read(), os.read(0, 10)
sys.stdout = sys.stderr = None
print("lost")
atexit.register(lambda: {SLEEP})
open("file", "w").write("text")
for _ in range(300): os.mkdir("d"), os.chdir("d")
shutil.rmtree(os.getcwd())
os.fork()  # both go on
"""
WRITE = "with open({}, 'wb') as file:\n    for _ in range(300): file.write(bytes(10**6))"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    try: {}\n    except BaseException: pass"
ACCIDENTS = {  # what the file does, and what is said; nothing, if the check passes
    "forgotten processes": (FORGOTTEN, ""),
    "much that is harmless": (HARMLESS, ""),
    "waiting for input": ("input('name? ')", "does not run: EOFError"),
    "printing without end": ("while True: print('x' * 1000)", STOPPED),
    "stderr without end": ("while True: os.write(2, bytes(10**5))", STOPPED),
    "loop that catches everything": (DEAF.format("time.sleep(1)"), STOPPED),
    "memory, whatever Python says": (f"kept = []\n{DEAF.format('kept.append(bytearray(10**7))')}", STOPPED),
    "stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", STOPPED),
    "list without end": ("kept = [0]\nwhile len(kept) < 2**28: kept += kept", "does not run: MemoryError"),
    "shared memory": ("mmap.mmap(-1, 3 << 30)", "does not run: OSError"),
    "huge file": (WRITE.format("'huge'"), "[Errno 27] File too large"),
    "huge temporary file": (WRITE.format("tempfile.mkstemp()[0]"), "[Errno 27] File too large"),
    "exception of 300 MB": ("raise ValueError('x' * 300_000_000)", "does not run: ValueError"),
    "GeneratorExit": ("raise GeneratorExit", FAILED + "GeneratorExit"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", ENDED.format("with status 130") + " KeyboardInterrupt"),
    "end with status 0": ("os._exit(0)", ENDED.format("with status 0")),
    "much on stderr, and an end": ("os.write(2, bytes(10**6))\nos._exit(3)", ENDED.format("with status 3")),
    "killed": ("os.kill(os.getpid(), 9)", ENDED.format("by a signal (Killed)")),
    "numpy replaced": ("np.random.default_rng = np.zeros = None", FAILED + "TypeError"),
    "answer without end": (
        f"json.dump = lambda _, file: [file.write('x' * 1000) for _ in range({MOST})]",
        FAILED + "BrokenPipeError",
    ),
}
DEFAULT = ("forgotten processes", "much that is harmless", "loop that catches everything", "GeneratorExit")
GUARD = ("list without end", "huge temporary file", "end with status 0", "killed")


def tier(name):
    return () if name in DEFAULT else pytest.mark.exhaustive if name in GUARD else pytest.mark.weekly


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """This process's environment with a mark of its own, whose processes do not outlive the test."""
    made = marked_environment()
    monkeypatch.setenv(NAME, made[NAME])
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield made
    monkeypatch.delenv(NAME)
    kill_all(made)


@linux
@pytest.mark.parametrize("name", [pytest.param(name, marks=tier(name)) for name in ACCIDENTS])
def test_accident_gets_one_clue_and_leaves_nothing(name, environment, tmp_path):
    text, said = ACCIDENTS[name]
    path = hand_in(EXERCISE, f"{IMPORTS}{text}\n{EXERCISE.solution}", tmp_path)
    (diagnosis,), printed = check(EXERCISE, path, LIMIT if said == STOPPED else 40)
    assert diagnosis.status == ("wrong" if said else "passed"), diagnosis
    assert all(said in clue and len(clue) < 700 and "\n" not in clue for clue in diagnosis.clues), diagnosis
    assert len(diagnosis.clues) == (1 if said else 0)
    assert len(printed) <= 2000
    assert printed.startswith("much much") == (text == HARMLESS)
    wait_until(lambda: not running(environment))
    assert list((tmp_path / "temporary").iterdir()) == []


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)])
@pytest.mark.usefixtures("signals_of_a_terminal")
def test_checker_that_is_ended_takes_all_processes_with_it(number, environment, tmp_path):
    hand_in(EXERCISE, f"{IMPORTS}{FORGOTTEN}\nos.mkdir('begun')\n{SLEEP}", tmp_path)
    command = [sys.executable, "-m", "minitransformer", "check", EXERCISE.name, "--folder", tmp_path]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    options = {"env": {**environment, "TMPDIR": tempfile.tempdir}, "start_new_session": True}
    process = subprocess.Popen(command, **streams, **options)
    wait_until(lambda: list((tmp_path / "temporary").glob("*/begun")))
    process.send_signal(number)
    assert process.communicate(timeout=10)[0].decode() == "minitransformer check: stopped\n"
    assert process.returncode == -number
    wait_until(lambda: not running(environment))
    assert list((tmp_path / "temporary").iterdir()) == []


ROW = {"function": "relu_backward", "status": "wrong", "outputs": {"dx": 0.5}, "wrong": ["dx"]}
ROW |= {"clues": ["a clue"], "mistakes": [["a name", "a question?"]]}
ANSWER = {"diagnoses": [ROW], "printed": ""}


def test_answer_of_the_process_is_read():
    (diagnosis,), printed = read_answer(EXERCISE, json.dumps(ANSWER).encode())
    assert (diagnosis.outputs, diagnosis.mistakes, printed) == ({"dx": 0.5}, (("a name", "a question?"),), "")


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"{", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, json.dumps(ANSWER).encode()[:-1]),
        *({**ANSWER, "diagnoses": rows} for rows in ([], [ROW, ROW], [[]], [{}], None, 3, "text")),
        *({**ANSWER, "printed": value} for value in (None, 3, ["text"])),
        *({**ANSWER, "diagnoses": [{**ROW, "status": value}]} for value in ("", None, [], "right")),
        *({**ANSWER, "diagnoses": [{**ROW, "function": value}]} for value in ("relu", None, 3)),
        *({**ANSWER, "diagnoses": [{**ROW, "outputs": value}]} for value in (None, [], {"dx": "0"}, {"dx": [1.0]})),
        *({**ANSWER, "diagnoses": [{**ROW, "outputs": {"dx": value}}]} for value in (True, {})),
        *({**ANSWER, "diagnoses": [{**ROW, key: value}]} for key in ("wrong", "clues") for value in (None, 3, [3])),
        *({**ANSWER, "diagnoses": [{**ROW, "mistakes": value}]} for value in (None, [3], [["a"]], [["a", 3]])),
        {**ANSWER, "diagnoses": [{**ROW, "more": 3}]},
    ],
    ids=lambda answer: str(answer)[:200],
)
def test_what_is_no_answer_is_one_line(answer, monkeypatch, tmp_path):
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def answer_with(command, *_, stdout, **options):
        os.write(stdout.fileno(), data)
        return 0

    monkeypatch.setattr("minitransformer.exercises.runner.run_child", answer_with)
    (diagnosis,), printed = check(EXERCISE, tmp_path)
    assert (diagnosis.status, printed) == ("wrong", "")
    assert diagnosis.clues == (ENDED.format("with status 0"),)


@linux
def test_limits_reach_the_file(tmp_path):
    lines = [f"assert resource.getrlimit(resource.{name})[0] == {value}" for name, value in LIMITS.items()]
    text = "\n".join(["import resource", "assert resource.getrlimit(resource.RLIMIT_CPU)[0] == 45", *lines])
    (diagnosis,), _ = check(EXERCISE, hand_in(EXERCISE, f"{text}\n{EXERCISE.solution}", tmp_path), 40)
    assert diagnosis.status == "passed", diagnosis
