"""What processes cost: the model that is fitted, and the steps that are simulated."""

import numpy as np
import pytest

from experiments import communication
from experiments.communication import (
    MACHINES,
    NETWORKS,
    Network,
    fit,
    measure_sums,
    ring_seconds,
    simulate,
)
from experiments.measuring.mpiexec import call_in_processes, find_mpiexec
from minitransformer.training.parallel.communicator import ONE_PROCESS
from tests.ranks import in_ranks

COUNTS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def rows(latency=2e-5, bandwidth=3e9, processes=2):
    return [
        {
            "processes": processes,
            "parameters": count,
            "seconds": latency + 4 * count / bandwidth,
            "seconds in order": 2 * latency + 8 * count / bandwidth,
        }
        for count in COUNTS
    ]


def test_the_fit_finds_the_latency_and_the_bandwidth_of_the_model_itself():
    found = fit(rows())
    assert found["processes"] == 2
    assert found["latency"] == pytest.approx(2e-5, rel=1e-6)
    assert found["bandwidth"] == pytest.approx(3e9, rel=1e-6)
    assert found["largest factor"] == pytest.approx(1.0, abs=1e-6)


def ring_in_plain_steps(machines, numbers, network):
    """Send the pieces round one by one -> (seconds, whether every machine has the sum in the end)."""
    rng = np.random.default_rng(0)
    have = rng.standard_normal((machines, numbers))
    expected, seconds, piece = have.sum(axis=0), 0.0, numbers // machines
    parts = [slice(i * piece, (i + 1) * piece) for i in range(machines)]
    for first, add in ((0, True), (1, False)):
        for turn in range(machines - 1):
            sent = [have[rank, parts[(rank + first - turn) % machines]].copy() for rank in range(machines)]
            for rank in range(machines):
                before = (rank - 1) % machines
                place = have[rank, parts[(before + first - turn) % machines]]
                place[...] = place + sent[before] if add else sent[before]
            seconds += network.latency + 4 * piece / network.bandwidth  # all send at the same time
    return seconds, np.allclose(have, expected)


@pytest.mark.parametrize("machines", [1, 3])
def test_the_time_of_a_ring_is_that_of_its_rounds(machines):
    network = Network("slow", 0.25, 100.0)
    seconds, complete = ring_in_plain_steps(machines, 240, network)
    assert complete
    assert ring_seconds(machines, 4 * 240, network) == pytest.approx(seconds)


def test_a_simulated_step_is_its_share_of_the_work_and_the_sum():
    found = simulate("base", "P100", 1_000_000, 2.0)
    assert len(found) == len(MACHINES) * len(NETWORKS)
    for row in found:
        network = next(each for each in NETWORKS if each.name == row["network"])
        assert row["work"] == 2.0 / row["machines"]
        assert row["sum"] == ring_seconds(row["machines"], 4e6, network)
        assert row["speedup"] == pytest.approx(2.0 / (row["work"] + row["sum"]))
    assert [row["speedup"] for row in found if row["machines"] == 1] == [1.0, 1.0]


def test_the_papers_times_are_those_of_8_gpus_and_its_batch():
    steps = {name: {"parameters": 10, "tokens": 500, "seconds": 0.5} for name in ("tiny", "base", "big")}
    assert communication.cases(steps) == [
        ("tiny", "CPU", 10, 0.5),
        ("base", "CPU", 10, 50.0),
        ("big", "CPU", 10, 50.0),
        ("base", "P100", 10, 3.2),
        ("big", "P100", 10, 8.0),
    ]


@pytest.mark.parametrize("size", [1, 3])
def test_all_processes_measure_the_same_sums_and_end(size):
    everyones = in_ranks(size, lambda ranks: measure_sums(ranks, 0.0, (10, 20)))
    assert all(found == everyones[0] for found in everyones)
    assert [(row["processes"], row["parameters"]) for row in everyones[0]] == [(size, 10), (size, 20)]
    assert all(row["seconds"] > 0 and row["seconds in order"] > 0 for row in everyones[0])


def test_lengths_for_which_memory_is_short_are_left_out(monkeypatch):
    monkeypatch.setattr(communication, "free_memory", lambda: 16 * 50)
    assert [row["parameters"] for row in measure_sums(ONE_PROCESS, 0.0, (10, 50, 51))] == [10, 50]


@pytest.mark.exhaustive
def test_real_processes_measure_their_sums(monkeypatch):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    started = []

    def few(launcher, count, module, call):
        started.append((module, call))
        return call_in_processes(launcher, count, module, "measure_sums(connect(), 0.01, counts=(10, 1000))")

    monkeypatch.setattr(communication, "call_in_processes", few)
    found = communication.sums_of(find_mpiexec("this test"), 2, 0.5)
    assert [(row["processes"], row["parameters"]) for row in found] == [(2, 10), (2, 1000)]
    assert started == [("experiments.communication", "measure_sums(connect(), 0.5)")]
