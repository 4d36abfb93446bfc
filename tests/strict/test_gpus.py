"""The processes of a machine take its GPUs in turn, on a stand-in for CuPy with several GPUs."""

import threading
from types import SimpleNamespace

import pytest

from minitransformer.backend import use_backend
from minitransformer.training.parallel import connect as connecting
from minitransformer.training.parallel.communicator import ONE_PROCESS
from tests.ranks import ThreadRank, in_ranks
from tests.strict.strict import strict


def chosen(monkeypatch, gpus, machines):
    """The GPU that each rank uses after it has connected; `machines` names the machine of each."""
    current = threading.local()

    class OfMachines(ThreadRank):
        def collect(self, value):
            return super().collect(machines[self.rank])

    def one_rank(base):
        current.join = OfMachines(base.rank, base.size, base.board)
        assert connecting.connect.__wrapped__() is current.join
        return getattr(current, "gpu", None)

    def use(index):
        assert 0 <= index < gpus
        current.gpu = index

    cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDeviceCount=lambda: gpus),
        Device=lambda index: SimpleNamespace(use=lambda: use(index)),
    )
    monkeypatch.setattr(connecting, "join", lambda: current.join)
    with use_backend(SimpleNamespace(**{**vars(strict), "__name__": "cupy", "cuda": cuda})):
        return in_ranks(len(machines), one_rank)


@pytest.mark.parametrize(
    ("gpus", "machines", "expected"), [(3, "aaa", [0, 1, 2]), (2, "abab", [0, 0, 1, 1]), (2, "aaa", [0, 1, 0])]
)
def test_the_processes_of_each_machine_take_its_gpus_in_turn(gpus, machines, expected, monkeypatch):
    assert chosen(monkeypatch, gpus, machines) == expected


def test_one_process_and_the_host_choose_no_gpu(monkeypatch):
    monkeypatch.setattr(connecting, "join", lambda: ONE_PROCESS)
    with use_backend(SimpleNamespace(**{**vars(strict), "__name__": "cupy"})):
        assert connecting.connect.__wrapped__() is ONE_PROCESS
    rank = ThreadRank(0, 1, None)
    monkeypatch.setattr(connecting, "join", lambda: rank)
    assert connecting.connect.__wrapped__() is rank
