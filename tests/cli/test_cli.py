"""What all commands have in common: help with examples, and one-line errors with exit status 2."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minitransformer import __version__, cli
from minitransformer.backend import BackendUnavailableError, backend_name
from minitransformer.cli import COMMANDS, GROUPS, WITH_BACKEND, WITH_SEED, main, parse
from tests.cli.run import assert_refused, run

# arguments with which a command ends well and quickly
ARGUMENTS = {
    "train": ["copy", "--steps", "1"],
    "summary": ["tiny"],
    "gradcheck": ["relu"],
    "bench": ["tiny"],
    "generate": ["x"],
    "evaluate": ["x", "--text", "y"],
    "embed": ["--text", "y"],
    "translate": ["x", "y"],
    "export": ["x", "y"],
    "init": ["course"],
    "solution": ["06"],
}
WITH_OPTION = {"--seed": {*WITH_SEED, "train"}, "--backend": set(WITH_BACKEND)}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Run every test in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_begins_with_an_example_and_has_the_options_that_matter(command, capsys):
    status, out, err = run(capsys, command, "--help")
    assert (status, err) == (0, "")
    own, common = out.split("\ncommon options:\n")
    assert f"\n  minitransformer {command}" in own
    assert "  --json " in common
    assert "  --debug " in common
    out = run(capsys, "train", "copy", "--help").out if command == "train" else out
    for option, commands in WITH_OPTION.items():
        assert (f"\n  {option} " in out) == (command in commands)
        if command not in commands:
            outcome = run(capsys, command, *ARGUMENTS.get(command, []), option, "1")
            assert_refused(outcome, f"minitransformer {command}: unrecognized arguments: {option}")


def test_help_lists_every_command_once_in_groups_and_the_everyday_ones_first(capsys):
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    assert re.findall(r"^(\w[\w ]*):$", out, flags=re.MULTILINE) == [*GROUPS, "options"]
    assert re.findall(r"^  (\w+)  +\w", out, flags=re.MULTILINE) == list(COMMANDS)
    everyday = "lesson sit start check train generate translate explore gradcheck"
    assert list(GROUPS["Everyday commands"]) == everyday.split()


@pytest.mark.parametrize("columns", [60, 100])
def test_help_fits_into_the_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (("--help",), *((command, "--help") for command in COMMANDS)):
        lines = run(capsys, *words).out.splitlines()
        # a command to copy is one line, however long
        assert [line for line in lines if len(line) > columns and " minitransformer " not in line] == []


def test_each_command_has_a_file_and_each_file_a_command():
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert files - {"__init__", "dialogue", "processes"} == set(COMMANDS)


def test_version_is_that_of_the_package(capsys):
    assert run(capsys, "--version") == (0, f"minitransformer {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trian"], "there is no command 'trian'; did you mean train? (see minitransformer --help)"),
        (["train", "txet"], "train: there is no task 'txet'; did you mean text? (see minitransformer train --help)"),
        (["train", "translate"], "train: there is no task 'translate'; did you mean translation?"),
        (["experiment", "tabel1"], "there is no experiment 'tabel1'; did you mean table1"),
        (["train", "copy", "--step", "3", "--sed=1"], "train copy: unrecognized arguments: --sed=1"),
        (["train", "copy", "--stepz", "3"], "unrecognized arguments: --stepz 3; did you mean --steps 3?"),
        (["train", "--seed", "3", "reverse"], "unrecognized arguments: reverse: put reverse before the options"),
        (["poetry"], "there is no command 'poetry'; commands: lesson, sit, start, "),
    ],
)
def test_a_word_that_is_misspelled_or_misplaced_is_refused_with_what_may_be_meant(words, said, capsys):
    status, out, err = run(capsys, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize(
    "words", [["relu", "--quick", "gelu"], ["--quick", "relu", "gelu"], ["relu", "gelu", "--quick"]]
)
def test_words_of_a_list_may_stand_before_and_after_options(words):
    assert parse(["gradcheck", *words]).names == [word for word in words if word != "--quick"]


@pytest.mark.parametrize("command", sorted(WITH_OPTION["--seed"]))
def test_a_negative_seed_is_refused(command, capsys, empty_folder):
    outcome = run(capsys, command, *ARGUMENTS.get(command, []), "--seed", "-1")
    assert_refused(outcome, f"{command}: --seed must be at least 0, got -1")
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("command", WITH_BACKEND)
def test_backend_that_is_unknown_or_not_installed_is_refused(command, capsys, monkeypatch, empty_folder):
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it fails, as on a machine without it
    words = (command, *ARGUMENTS.get(command, []), "--backend")
    assert_refused(run(capsys, *words, "jax"), "unknown backend 'jax'", "numpy, cupy")
    assert_refused(run(capsys, *words, "cupy"), "CuPy", "not installed", "pip install -e '.[cuda12]'")
    assert backend_name() == "numpy"
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["train", "copy", "--steps", "0"], ValueError),
        (["gradcheck", "nonsense"], ValueError),
        (["gradcheck", "relu", "--backend", "cupy"], BackendUnavailableError),
    ],
)
def test_debug_raises_the_error(arguments, error, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(error):
        main([*arguments, "--debug"])


def test_an_interruption_prints_one_line_and_ends_with_status_130(capsys, monkeypatch):
    def interrupted(*arguments, **fields):
        raise KeyboardInterrupt

    monkeypatch.setattr("minitransformer.cli.summary.named_config", interrupted)
    assert run(capsys, "summary", "tiny") == (130, "", "minitransformer summary: stopped\n")


def test_sigterm_prints_one_line_and_ends_with_status_143_whatever_the_interrupted_code_makes_of_it(
    capsys, monkeypatch
):
    def interrupted(*arguments, **fields):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError from None

    monkeypatch.setattr("minitransformer.cli.summary.named_config", interrupted)
    assert run(capsys, "summary", "tiny") == (143, "", "minitransformer summary: stopped\n")


def test_python_m_runs_the_same_command_and_prints_nothing_on_stderr(empty_folder):
    command = [sys.executable, "-m", "minitransformer", "gradcheck", "relu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("relu ")
    assert "1 check, all passed" in done.stdout


@pytest.mark.exhaustive
def test_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m minitransformer summary base | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
