"""Which of several processes this one is, read from the variables of a launcher."""

import os
import sys
import types

import pytest

from minitransformer.cli import main
from minitransformer.system.launcher import Place, place_in
from minitransformer.training.parallel.communicator import ONE_PROCESS, ProcessError
from minitransformer.training.parallel.connect import communicator_of, join

MPI = "minitransformer.training.parallel.mpi"


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, None),
        ({"SLURM_PROCID": "3"}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, Place(1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "0"}, Place(0, 2)),
        ({"MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_SIZE": "3"}, Place(2, 3)),
        ({"PMIX_RANK": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "16"}, Place(5, 8)),
        ({"PMIX_RANK": "5"}, Place(5, None)),
    ],
)
def test_the_place_of_a_process_is_what_its_launcher_says(environment, place):
    assert place_in(environment) == place


def with_mpi(monkeypatch, size):
    made = types.SimpleNamespace(size=size)
    monkeypatch.setitem(sys.modules, MPI, types.SimpleNamespace(MPICommunicator=lambda: made))
    return made


def without_mpi(monkeypatch):
    monkeypatch.delitem(sys.modules, MPI, raising=False)
    monkeypatch.setitem(sys.modules, "mpi4py", None)


def test_a_process_without_launcher_is_alone_even_with_mpi(monkeypatch):
    with_mpi(monkeypatch, 4)
    assert communicator_of({}) is ONE_PROCESS


@pytest.mark.parametrize("environment", [{"PMI_RANK": "0", "PMI_SIZE": "3"}, {"PMIX_RANK": "0"}])
def test_mpi_connects_the_processes_of_a_launcher(environment, monkeypatch):
    made = with_mpi(monkeypatch, 3)
    assert communicator_of(environment) is made
    without_mpi(monkeypatch)
    with pytest.raises(ProcessError, match="cannot talk to each other"):
        communicator_of(environment)


def test_one_process_that_mpiexec_has_started_needs_no_mpi(monkeypatch):
    without_mpi(monkeypatch)
    assert communicator_of({"PMI_RANK": "0", "PMI_SIZE": "1"}) is ONE_PROCESS


def test_mpiexec_of_another_mpi_is_noticed(monkeypatch):
    with_mpi(monkeypatch, 1)
    with pytest.raises(ProcessError, match="mpiexec has started 3 processes, but mpi4py sees 1"):
        communicator_of({"PMI_RANK": "2", "PMI_SIZE": "3"})


def test_error_before_the_processes_join_names_the_rank(monkeypatch, capfd):
    without_mpi(monkeypatch)
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    join.cache_clear()
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    read, write = os.pipe()
    monkeypatch.setenv("PMI_FD", str(write))
    with pytest.raises(SystemExit) as end:
        main(["devices"])
    assert end.value.code == 2
    assert os.read(read, 100) == b"cmd=abort exitcode=2\n"  # what MPICH's launcher ends the others for
    os.close(read)
    os.close(write)
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("minitransformer devices: rank 1 of 2: mpiexec has started 2 processes")


def test_every_command_runs_in_one_process_of_mpiexec(monkeypatch, capsys):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    assert main(["devices"]) == 0
    assert "numpy: usable" in capsys.readouterr().out
