"""What all commands have in common: help with examples, and one-line errors with exit status 2."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minitransformer import __version__, cli
from minitransformer.backend import BackendUnavailableError, backend_name
from minitransformer.cli import COMMANDS, GROUPS, WITH_BACKEND, WITH_SEED, main
from tests.cli.run import assert_refused, run

# arguments with which a command ends well and quickly
ARGUMENTS = {
    "train": ["copy", "--steps", "1"],
    "summary": ["tiny"],
    "gradcheck": ["relu"],
    "bench": ["tiny"],
    "generate": ["x"],
    "evaluate": ["x", "--text", "y"],
    "sharpness": ["x"],
    "translate": ["x", "y"],
    "init": ["course"],
    "solution": ["06"],
}
every_command = pytest.mark.parametrize("command", COMMANDS)
WITH_OPTION = {"--seed": {*WITH_SEED, "train"}, "--backend": set(WITH_BACKEND)}
INNER = {"train": ["copy"]}  # whose help shows the options
with_backend = pytest.mark.parametrize("command", WITH_BACKEND)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Run every test in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@every_command
def test_help_of_every_command_begins_with_an_example_and_ends_with_the_advanced_options(command, capsys):
    status, out, err = run(capsys, command, "--help")
    assert (status, err) == (0, "")
    everyday, advanced = out.split("\nadvanced options:\n")
    assert f"\n  minitransformer {command}" in everyday
    assert "  --json " in advanced
    assert "  --debug " in advanced


@pytest.mark.parametrize("option", WITH_OPTION)
@every_command
def test_an_option_is_offered_where_it_matters_and_refused_elsewhere(command, option, capsys):
    words = [command, *INNER.get(command, [])]
    assert (f"\n  {option} " in run(capsys, *words, "--help").out) == (command in WITH_OPTION[option])
    if command not in WITH_OPTION[option]:
        outcome = run(capsys, command, *ARGUMENTS.get(command, []), option, "1")
        assert_refused(outcome, f"minitransformer {command}: unrecognized arguments: {option}")


def test_help_lists_every_command_once_in_groups_and_the_everyday_ones_first(capsys):
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    assert re.findall(r"^(\w[\w ]*):$", out, flags=re.MULTILINE) == [*GROUPS, "options"]
    assert re.findall(r"^  (\w+)  +\w", out, flags=re.MULTILINE) == list(COMMANDS)
    assert list(GROUPS["Everyday commands"]) == [
        "lesson",
        "sit",
        "start",
        "check",
        "train",
        "generate",
        "translate",
        "explore",
        "gradcheck",
    ]


def test_each_command_has_a_file_and_each_file_a_command():
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - {
        "__init__",
        "dialogue",
        "processes",
        "saved",
    }
    assert files == set(COMMANDS)


def test_version_is_that_of_the_package(capsys):
    assert run(capsys, "--version") == (0, f"minitransformer {__version__}\n", "")


@pytest.mark.parametrize("command", sorted(WITH_OPTION["--seed"]))
def test_a_negative_seed_is_refused(command, capsys, empty_folder):
    assert_refused(
        run(capsys, command, *ARGUMENTS.get(command, []), "--seed", "-1"),
        f"{command}: --seed must be at least 0, got -1",
    )
    assert list(empty_folder.iterdir()) == []


@with_backend
def test_an_unknown_backend_is_refused_with_the_known_ones(command, capsys):
    assert_refused(
        run(capsys, command, *ARGUMENTS.get(command, []), "--backend", "jax"), "unknown backend 'jax'", "numpy, cupy"
    )


@with_backend
def test_error_without_cupy_says_how_to_install_it(command, capsys, monkeypatch, empty_folder):
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it fails, as on a machine without it
    outcome = run(capsys, command, *ARGUMENTS.get(command, []), "--backend", "cupy")
    assert_refused(outcome, "CuPy", "not installed", "pip install -e '.[cuda12]'")
    assert backend_name() == "numpy"
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["train", "copy", "--steps", "0"], ValueError),
        (["summary", "nonsense"], ValueError),
        (["gradcheck", "nonsense"], ValueError),
        (["gradcheck", "relu", "--seed", "-1"], ValueError),
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


def test_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m minitransformer summary base | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
