"""What all commands have in common: help with examples, and bad input refused in one line with status 2."""

import subprocess
import sys

import pytest

from minitransformer import __version__
from minitransformer.backend import BackendUnavailableError, backend_name
from minitransformer.cli import COMMANDS, main
from tests.cli.run import assert_refused, run

# what a command needs to end well, and quickly
ARGUMENTS = {
    "train": ["copy", "--steps", "1"],
    "summary": ["tiny"],
    "gradcheck": ["relu"],
    "bench": ["tiny"],
    "generate": ["x"],
    **{command: ["06"] for command in ("start", "check", "hint", "solution")},
}
every_command = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Every test runs in an empty folder, which it gets."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@every_command
def test_help_of_every_command_has_an_example_and_the_options_of_all(command, capsys):
    status, out, err = run(capsys, command, "--help")
    assert (status, err) == (0, "")
    assert f"\n  minitransformer {command} " in out
    for option in ("--seed", "--backend", "--json", "--debug"):
        assert option in out


def test_help_names_every_command_with_examples(capsys):
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    for command in COMMANDS:
        assert f"  minitransformer {command}" in out


def test_version_is_that_of_the_package(capsys):
    assert run(capsys, "--version") == (0, f"minitransformer {__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["start"], ["summary"], ["summary", "base", "--nonsense"]])
def test_a_line_that_makes_no_command_is_refused_in_one_line_that_says_where_more_is_said(
    arguments, capsys, empty_folder
):
    outcome = run(capsys, *arguments)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith("minitransformer")
    assert outcome.err.endswith("--help)\n")
    assert list(empty_folder.iterdir()) == []


@every_command
def test_a_negative_seed_is_refused_by_every_command(command, capsys, empty_folder):
    assert_refused(
        run(capsys, command, *ARGUMENTS.get(command, []), "--seed", "-1"),
        f"{command}: --seed must be 0 or more, got -1",
    )
    assert list(empty_folder.iterdir()) == []


@every_command
def test_an_unknown_backend_is_refused_with_the_known_ones(command, capsys):
    assert_refused(
        run(capsys, command, *ARGUMENTS.get(command, []), "--backend", "jax"), "unknown backend 'jax'", "numpy, cupy"
    )


@every_command
def test_cupy_without_cupy_is_refused_with_how_to_get_it(command, capsys, monkeypatch, empty_folder):
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it fails, as on a machine without it
    outcome = run(capsys, command, *ARGUMENTS.get(command, []), "--backend", "cupy")
    assert_refused(outcome, "CuPy", "not installed", "pip install 'minitransformer[cuda12]'")
    assert backend_name() == "numpy"
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["train", "nonsense"], ValueError),
        (["summary", "nonsense"], ValueError),
        (["gradcheck", "nonsense"], ValueError),
        (["gradcheck", "relu", "--seed", "-1"], ValueError),
        (["summary", "tiny", "--backend", "cupy"], BackendUnavailableError),
    ],
)
def test_debug_raises_the_error_itself(arguments, error, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(error):
        main([*arguments, "--debug"])


def test_an_interruption_ends_in_one_line_and_status_130(capsys, monkeypatch):
    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr("minitransformer.cli.summary.summarize", interrupted)
    assert run(capsys, "summary", "tiny") == (130, "", "minitransformer summary: stopped\n")


def test_python_m_runs_the_same_and_is_quiet_on_stderr(empty_folder):
    command = [sys.executable, "-m", "minitransformer", "gradcheck", "relu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("relu ")
    assert "1 checks, all right" in done.stdout


def test_python_m_hands_the_status_on():
    done = subprocess.run(
        [sys.executable, "-m", "minitransformer", "summary", "huge"], capture_output=True, check=False
    )
    assert done.returncode == 2


def test_reader_that_has_gone_away_is_no_error():
    command = f"{sys.executable} -m minitransformer summary base | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
