"""Benchmarks that start processes."""

import pytest

from experiments.measuring import mpiexec
from tests.cli.run import run


@pytest.mark.parametrize("missing", ["mpi4py", "mpiexec"])
@pytest.mark.parametrize("command", ["processes", "communication"])
def test_without_mpi_the_command_says_what_to_install(command, missing, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(mpiexec.shutil, "which", lambda name, **where: None if missing == name else name)
    monkeypatch.setattr(mpiexec.importlib.util, "find_spec", lambda name: None if missing == name else name)
    status, _, err = run(capsys, "experiment", command, "--runs", tmp_path)
    assert status == 2
    assert f"experiment {command} needs mpi4py and mpiexec: pip install -e '.[mpi]'" in err


def test_a_process_that_fails_ends_the_benchmark_with_its_message(tmp_path):
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho no such size >&2\nexit 1\n")
    launcher.chmod(0o755)
    with pytest.raises(RuntimeError, match="ended with status 1: no such size"):
        mpiexec.call_in_processes(str(launcher), 2, "experiments.processes", "time_steps('giant', 1.0, connect())")
