"""What macOS and Windows do differently, simulated here: each test breaks one thing as such a system would."""

import ast
import contextlib
import errno
import io
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from experiments.lengths import train_and_test
from experiments.measuring.equal_terms import prepare_worker, train_all
from minitransformer.cli import dialogue, gradcheck, main, silence
from minitransformer.recipes.folder import RunFolder
from minitransformer.system.files import named_in_errors
from minitransformer.system.signals import Interruptions, blocked
from minitransformer.system.terminal import is_closed_pipe, quoted

ROOT = Path(__file__).parent.parent
INVALID = OSError(errno.EINVAL, "Invalid argument")
READS_AND_WRITES = {"read_text": 0, "write_text": 1, "open": None}  # the place of the encoding among the arguments


@pytest.fixture
def windows(monkeypatch):
    """Only code that asks for the system's name notices."""
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("windows")
def test_a_closed_pipe_of_windows_ends_a_command_as_a_broken_one_does(monkeypatch):
    def write(*arguments, **options):
        raise INVALID

    discarded = []
    monkeypatch.setattr("minitransformer.cli.discard_output", lambda: discarded.append(True))
    monkeypatch.setattr("minitransformer.cli.summary.run", write)
    assert main(["summary", "tiny"]) == 141
    assert discarded


def test_only_windows_calls_a_closed_pipe_invalid(monkeypatch):
    assert not is_closed_pipe(INVALID)
    monkeypatch.setattr(sys, "platform", "win32")
    assert is_closed_pipe(INVALID)
    assert not is_closed_pipe(OSError(errno.EINVAL, "Invalid argument", "a:b"))
    with pytest.raises(OSError, match=r"Invalid argument$") as raised, named_in_errors("cannot save"):
        raise OSError(errno.EINVAL, "Invalid argument") from None
    assert raised.value.errno == errno.EINVAL


def test_the_commands_that_are_printed_suit_the_shell(monkeypatch):
    assert quoted("my runs/a") == "'my runs/a'"
    monkeypatch.setattr(sys, "platform", "win32")
    assert quoted(r"runs\reverse") == r"runs\reverse"
    assert quoted(r"my runs\a") == r'"my runs\a"'
    folder = RunFolder(Path("my runs"))
    assert folder.command_from(folder.path) == 'minitransformer train --resume "my runs"'


def test_the_colon_of_a_drive_does_not_end_the_path_of_a_layer(monkeypatch):
    asked = []
    monkeypatch.setattr(gradcheck, "load_module", lambda path: asked.append(path) or sys)
    with pytest.raises(ValueError, match="has no class or function MyLayer"):
        gradcheck.load_own(r"C:\my\layer.py:MyLayer", None)
    assert asked == [r"C:\my\layer.py"]


@pytest.mark.usefixtures("signals_of_a_terminal")
def test_signals_that_windows_lacks_are_not_needed(monkeypatch):
    for name in ("setitimer", "SIGALRM", "ITIMER_REAL", "pthread_sigmask", "SIG_BLOCK", "SIGHUP", "SIGKILL"):
        monkeypatch.delattr(signal, name, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), Interruptions() as interruptions, blocked(signal.SIGINT):
        signal.raise_signal(signal.SIGINT)
    assert interruptions.received == signal.SIGINT
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_silent_process_may_print_any_character(monkeypatch):
    real = open
    monkeypatch.setattr("builtins.open", lambda *a, **options: real(*a, **{"encoding": "cp1252", **options}))
    with silence():
        print("√C → ∂L")


def test_lines_of_a_pipe_are_utf_8_whatever_the_system_prefers(monkeypatch):
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    for encoding in ("cp1252", "ascii", "utf8"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("größe\r\n√\n".encode()), encoding))
        assert list(dialogue.lines_of_input()) == ["größe", "√"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("a\ngröße\n".encode("latin1")), "utf8"))
    with pytest.raises(ValueError, match="the input is not text in UTF-8: line 2 cannot be read"):
        list(dialogue.lines_of_input())


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=pytest.mark.weekly)])
def test_the_processes_of_an_experiment_can_be_started_without_a_fork(method, monkeypatch):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    pool = partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context(method))
    monkeypatch.setattr("experiments.measuring.equal_terms.ProcessPoolExecutor", pool)
    (row,) = train_all(partial(train_and_test, steps=1), [("copy", "none")], processes=100)
    assert row["positions"] == "none"
    assert callable(prepare_worker)


def test_no_more_processes_are_started_than_there_are_trainings(monkeypatch):
    asked = []

    def pool(processes, **options):
        asked.append(processes)
        return contextlib.nullcontext()

    monkeypatch.setattr("experiments.measuring.equal_terms.ProcessPoolExecutor", pool)
    with pytest.raises(AttributeError):
        train_all(print, [("copy",)] * 3, processes=100)  # Windows allows 61
    assert asked == [3]


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", ["minitransformer", "lessons", "docs", "plots"])
def test_every_text_file_is_opened_with_an_encoding(folder):
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and without_encoding(node):
                missing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert missing == []


def without_encoding(call):
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name not in READS_AND_WRITES or owner in ("os", "webbrowser", "wave", "tarfile"):
        return False
    words = [a.value for a in [*call.args, *(k.value for k in call.keywords)] if isinstance(a, ast.Constant)]
    if name == "open" and any(isinstance(word, str) and "b" in word and len(word) < 4 for word in words):
        return False
    place = READS_AND_WRITES[name]
    positional = place is not None and len(call.args) > place
    return not positional and all(keyword.arg != "encoding" for keyword in call.keywords)


@pytest.mark.exhaustive
def test_a_run_does_not_depend_on_the_order_of_sets(tmp_path):
    command = [
        sys.executable,
        "-m",
        "minitransformer",
        "train",
        "reverse",
        "--steps",
        "2",
        "--batch-size",
        "4",
        "--name",
        "a",
    ]
    models = []
    for seed in ("0", "1"):
        where = tmp_path / seed
        where.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=where, env=environment, check=True, capture_output=True)
        models.append((where / "runs/a/log.csv").read_bytes())
    assert models[0] == models[1]
