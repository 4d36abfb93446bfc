"""Files that do what no exercise asks for, and what `minitransformer check` says about each.

`python -m tests.exercises.hostile` prints a table: seconds, peak memory of the checker, and what is left afterwards.
Every bomb is bounded, so that a checker that fails here does no harm: at most 40 processes, 2 GB, 300 MB on the disk.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from minitransformer.exercises import find_exercise
from tests.exercises.answers import hand_in
from tests.processes import kill_all, marked_environment, running

EXERCISE = find_exercise("02_relu_backward")
LIMIT, ENOUGH = 2.5, 40.0  # seconds for a file that never ends, and for the others, on a busy machine
STOPPED = f"it was stopped after {LIMIT} s: is there a loop that never ends?"
PASSED = "relu_backward dx ok"
WRONG = "relu_backward WRONG"  # in words that depend on the version of Python, perhaps after all its time
DAEMON = """
def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
            os._exit(0)
        os._exit(0)
    os.wait()

"""
SLEEP = "time.sleep(600)"
SECONDS = f"600.{os.getpid()}"  # by which the programs called sleep are found


class Hostile(NamedTuple):
    """A file that is right at its end, unless it never gets there."""

    said: str  # a part of what the learner is told
    text: str
    inside: bool = False  # whether the text is in the function


def floods():
    """Output without end."""
    line = '"x" * 1000'
    block = "b'\\xff' * 100_000"
    yield "print without end", Hostile(STOPPED, f"while True: print({line})")
    yield "stderr without end", Hostile(STOPPED, f"while True: sys.stderr.write({line} + chr(10))")
    yield "stdout past Python", Hostile(STOPPED, f"while True: os.write(1, {block})")
    yield "stderr past Python", Hostile(STOPPED, f"while True: os.write(2, {block})")
    end = "its process ended with status 3 before the check was done"
    yield "300 MB on stderr, and an end", Hostile(end, f"for _ in range(3000): os.write(2, {block})\nos._exit(3)")
    yield "an exception of 300 MB", Hostile("does not run: ValueError", 'raise ValueError("x" * 300_000_000)')


def processes():
    """Processes that go on."""
    alone = f"me = os.getpid()\n{{}}\nif os.getpid() != me: {SLEEP}"
    yield "fork, both go on", Hostile(PASSED, "os.fork()")
    yield "ten children", Hostile(PASSED, alone.format("for _ in range(10):\n    if os.getpid() == me: os.fork()"))
    yield "fork bomb, 32 processes", Hostile(PASSED, alone.format("for _ in range(5): os.fork()"))
    chain = "if os.fork() == 0:\n    for _ in range(3000):\n        os.setsid()\n        if os.fork(): os._exit(0)\n"
    yield "chain of daemons", Hostile(PASSED, f"{chain}    os._exit(0)")
    yield "daemon", Hostile(PASSED, f"{DAEMON}daemon(lambda: {SLEEP})")
    deaf = "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]"
    yield "daemon that ignores signals", Hostile(PASSED, f"{DAEMON}daemon(lambda: ({deaf}, {SLEEP}))")
    yield "daemon that computes", Hostile(STOPPED, f"{DAEMON}daemon(lambda: [0 for _ in iter(int, 1)])\n{SLEEP}")
    flood = "while True: os.write(2, bytes(10_000))"
    yield "daemon that floods", Hostile(PASSED, f"{DAEMON}def flood():\n    {flood}\n\ndaemon(flood)")
    sleeper = f"subprocess.Popen(['sleep', '{SECONDS}'], start_new_session=True{{}})"
    yield "program in a session of its own", Hostile(PASSED, sleeper.format(""))
    yield "program without environment", Hostile(PASSED, sleeper.format(", env={'PATH': os.environ['PATH']}"))
    yield "thread that never ends", Hostile(PASSED, f"threading.Thread(target=lambda: {SLEEP}).start()")
    yield "50 threads", Hostile(PASSED, f"for _ in range(50): threading.Thread(target=lambda: {SLEEP}).start()")


def memory_and_files():
    """More than there is."""
    error = "does not run: MemoryError"
    yield "arrays", Hostile(error, "kept = []\nwhile len(kept) < 300: kept.append(np.ones(10**6))")
    yield "one array of 800 GB", Hostile(error, "np.zeros(10**11)")
    yield "list", Hostile(error, "kept = [0]\nwhile len(kept) < 2**28: kept += kept")
    yield "string", Hostile(error, "text = 'x'\nwhile len(text) < 2**31: text += text")
    greedy = "kept = []\nwhile True:\n    try: kept.append(bytearray(10**7))\n    except BaseException: pass"
    yield "memory, whatever Python says", Hostile(STOPPED, greedy)
    yield "shared memory", Hostile("does not run: OSError", "mmap.mmap(-1, 3 << 30)")
    large = "does not run: OSError: [Errno 27] File too large"
    write = "\nwith open({}, 'wb') as file:\n    for _ in range(300): file.write(bytes(10**6))"
    yield "huge file in the current folder", Hostile(large, write.format("'huge'"))
    yield "huge file in the temporary folder", Hostile(large, write.format("tempfile.mkstemp()[0]"))
    yield "sparse file of 1 TB", Hostile(large, "open('sparse', 'wb').truncate(10**12)")
    yield "2000 files", Hostile(PASSED, "for i in range(2000): open(f'{i}', 'w').write('text')")
    yield "300 folders in one another", Hostile(PASSED, "for _ in range(300): os.mkdir('d'), os.chdir('d')")
    yield "current folder removed", Hostile(PASSED, "shutil.rmtree(os.getcwd())")


def endings():
    """Files that never end, or too early."""
    yield "loop without end", Hostile(STOPPED, "while True: pass", inside=True)
    deaf = "while True:\n    try: time.sleep(1)\n    except BaseException: pass"
    yield "loop that catches everything", Hostile(STOPPED, deaf, inside=True)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN), signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    yield "loop that ignores signals", Hostile(STOPPED, ignore + deaf, inside=True)
    yield "sys.exit", Hostile("SystemExit: bye", "sys.exit('bye')", inside=True)
    status = "its process ended with status 0 before the check was done"
    yield "os._exit(0)", Hostile(status, "os._exit(0)", inside=True)
    ended = "its process ended by a signal ({}) before the check was done"
    yield "os.abort", Hostile(ended.format("Aborted"), "os.abort()", inside=True)
    killed = ended.format("Killed")
    yield "SIGKILL to itself", Hostile(killed, "os.kill(os.getpid(), 9)")
    yield "SIGKILL to its group", Hostile(killed, "os.killpg(0, 9)")
    yield "SIGKILL to its parent", Hostile(killed, f"os.kill(os.getppid(), 9)\n{SLEEP}")
    yield "SIGKILL to its parent's group", Hostile(killed, f"os.killpg(os.getpgid(os.getppid()), 9)\n{SLEEP}")
    yield "SIGSTOP to itself", Hostile(STOPPED, "os.kill(os.getpid(), signal.SIGSTOP)")
    yield "SIGSTOP to its parent", Hostile(STOPPED, f"os.kill(os.getppid(), signal.SIGSTOP)\n{SLEEP}")
    deep = "sys.setrecursionlimit(10**9)\ndef f(n): return 1 + f(n + 1)\nf(0)"
    yield "deep recursion", Hostile(WRONG, deep)
    nested = "x = []\nfor _ in range(10**6): x = [x]\nsys.setrecursionlimit(10**9)\nrepr(x)"
    yield "deep recursion in C", Hostile(ended.format("Segmentation fault"), nested)
    yield "Ctrl-C", Hostile("KeyboardInterrupt", "raise KeyboardInterrupt")


def damage():
    """Python itself in disorder."""
    yield "no streams", Hostile(PASSED, "os.closerange(0, 3)")
    yield "no open files", Hostile(PASSED, "os.closerange(0, 1000)")
    yield "atexit without end", Hostile(PASSED, f"atexit.register(lambda: {SLEEP})")
    yield "no os._exit, atexit without end", Hostile(STOPPED, f"os._exit = print\natexit.register(lambda: {SLEEP})")
    yield "sys.stdout replaced", Hostile(PASSED, "sys.stdout = sys.stderr = None\nprint('lost')")
    yield "sys.stdout closed", Hostile("ValueError", "sys.stdout.close()\nsys.stdout.flush()")
    yield "its own file removed", Hostile(PASSED, "os.remove(__file__)")
    yield "another folder", Hostile(PASSED, "os.chdir('/')")
    yield "json replaced", Hostile(status_zero(), "json.dumps = lambda *a, **k: 'nothing'")
    yield "json of another kind", Hostile(status_zero(), "json.dumps = lambda *a, **k: '[' * 10**6")
    yield "numpy replaced", Hostile("before the check was done. TypeError", "np.random.default_rng = np.zeros = None")
    noise = "class Noise:\n    def __del__(self): raise ValueError('noise')\n"
    yield "__del__ that raises", Hostile(PASSED, f"{noise}for _ in range(1000): Noise()\nkept = Noise()")
    yield "input()", Hostile("does not run: EOFError", "input('name? ')")
    generator = "def lines():\n    while True: yield input()\nreturn list(lines())"
    yield "generator that waits for input", Hostile("EOFError", generator, inside=True)
    yield "reading stdin", Hostile(PASSED, "sys.stdin.read(), os.read(0, 10)")


def status_zero():
    """What is said about a process that ends well, without an answer."""
    return "its process ended with status 0 before the check was done"


HOSTILE = dict([*floods(), *processes(), *memory_and_files(), *endings(), *damage()])
# what is tried by default: of output, processes and memory one each, and not those that take the whole time limit
QUICK = ("chain of daemons",)
GUARD = (  # one of each kind
    "300 MB on stderr, and an end",
    "fork bomb, 32 processes",
    "shared memory",
    "huge file in the temporary folder",
    "loop that ignores signals",
    "os._exit(0)",
    "SIGKILL to its group",
    "SIGSTOP to its parent",
    "no streams",
    "json replaced",
)
IMPORTS = "import atexit, json, mmap, os, shutil, signal, subprocess, sys, tempfile, threading, time\n"
COMMAND = """
import signal, sys
import minitransformer.cli.check
from minitransformer.cli import main
from minitransformer.experiments.measuring.timing import resident_peak

signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the tests ignore it
minitransformer.cli.check.LIMIT = float(sys.argv[1])
status = main(sys.argv[3:])
open(sys.argv[2], "w").write(str(resident_peak()))
sys.exit(status)
"""


class Outcome(NamedTuple):
    """What came of a file."""

    status: int
    said: str
    seconds: float
    peak: int  # bytes of the checker
    left: list[str]  # processes, and files in the current and the temporary folder
    file: bool  # whether the learner's file is as it was


def write(hostile, folder):
    """The file in a learner's folder -> its path."""
    folder.mkdir()
    text = IMPORTS + hostile.text + "\n" + EXERCISE.solution
    if hostile.inside:
        body = "".join(f"    {line}\n" for line in hostile.text.splitlines())
        text = f"{IMPORTS}def relu_backward(*args):\n{body}"
    return hand_in(EXERCISE, text, folder)


def start(path, folder, environment, limit=ENOUGH):
    """`minitransformer check` of the file in a process, with folders of its own."""
    for name in ("here", "temporary"):
        (folder / name).mkdir()
    harness = [sys.executable, "-c", COMMAND, str(limit), folder / "peak"]
    return subprocess.Popen(
        [*harness, "check", EXERCISE.name, "--folder", path.parent],
        cwd=folder / "here",
        env={**environment, "TMPDIR": str(folder / "temporary"), "COLUMNS": "1000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def left_in(folder, environment):
    """What is left: marked processes, programs without environment, files."""
    files = [str(path.relative_to(folder)) for name in ("here", "temporary") for path in (folder / name).rglob("*")]
    return [f"process {pid}" for pid in {*running(environment), *sleepers()}] + files


def sleepers():
    """The programs called sleep, which need not have a mark."""
    wanted = f"sleep\0{SECONDS}\0".encode()
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if path.read_bytes() == wanted:
                found.add(int(path.parent.name))
    return found


def attempt(hostile, folder):
    """Check the file -> Outcome."""
    environment = marked_environment()
    path = write(hostile, folder / "mine")
    text = path.read_text("utf-8")
    began = time.monotonic()
    process = start(path, folder, environment, LIMIT if hostile.said in (STOPPED, WRONG) else ENOUGH)
    try:
        said = " ".join(process.communicate(timeout=60)[0].decode().split())
        seconds = time.monotonic() - began
        peak = int((folder / "peak").read_text()) if (folder / "peak").exists() else -1
        left = left_in(folder, environment)
        same = path.exists() and path.read_text("utf-8") == text
        return Outcome(process.returncode, said, seconds, peak, left, same)
    finally:
        kill_all(environment)
        for pid in sleepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


if __name__ == "__main__":
    for name in sys.argv[1:] or HOSTILE:
        with tempfile.TemporaryDirectory() as place:
            found = attempt(HOSTILE[name], Path(place))
        right = "" if HOSTILE[name].said in found.said else f"NOT SAID: {HOSTILE[name].said}\n{found.said[:2000]}"
        print(f"| {name} | {found.seconds:.1f} s | {found.peak / 1e6:.0f} MB | {found.left or 'nothing'} | {right}")
        sys.stdout.flush()
