"""The sums of several GPUs over NCCL, on the stand-in: the same as over the host's memory, and its calls are right."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.backend import to_device, to_host, use_backend, xp
from minitransformer.training import clipping
from minitransformer.training.parallel import nccl
from minitransformer.training.parallel.communicator import ONE_PROCESS
from minitransformer.training.parallel.connect import connect, join
from minitransformer.training.parallel.nccl import NCCLCommunicator, choose_gpu
from tests.ranks import ThreadRank, in_ranks, same_in_all
from tests.strict.meter import measured
from tests.strict.nccl import Cuda, device

NUMBERS = np.random.default_rng(0).standard_normal((4, 11))


def added_up(size, dtype=np.float32, in_order=False, cuda=None, change=lambda array: array):
    """The sum in each rank, over NCCL."""

    def one_rank(base):
        ranks = choose_gpu(base)
        assert isinstance(ranks, NCCLCommunicator)
        array = change(to_device(NUMBERS[base.rank].astype(dtype)))
        ranks.add_up(array, in_order)
        return to_host(array)

    with use_backend(device(cuda or Cuda(size))):
        return in_ranks(size, one_rank)


def in_order(size, dtype):
    total = NUMBERS[0].astype(dtype)
    for other in NUMBERS[1:size]:
        total = total + other.astype(dtype)
    return total


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sum_is_that_of_all_ranks(size, dtype):
    found = same_in_all(added_up(size, dtype))
    np.testing.assert_allclose(found, in_order(size, dtype), rtol=1e-5)
    assert found.dtype == dtype


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("chunk", [3, 100])
def test_the_sum_in_order_has_the_bits_of_a_loop_over_the_ranks(size, chunk, monkeypatch):
    monkeypatch.setattr(nccl, "CHUNK", chunk)
    found = same_in_all(added_up(size, in_order=True))
    assert found.tobytes() == in_order(size, np.float32).tobytes()
    assert size == 1 or found.tobytes() != same_in_all(added_up(size)).tobytes(), "another order gives other bits"


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("length", [2, 100, 2 * clipping.BLOCK + 7])
def test_every_rank_gets_the_shards_of_all(size, length):
    numbers = np.random.default_rng(1).standard_normal((size, length)).astype(np.float32)

    def one_rank(base):
        ranks, array = choose_gpu(base), to_device(numbers[base.rank].copy())
        ranks.all_gather(array)
        own = ranks.shards(length)[ranks.rank]
        return to_host(array), ranks.gather(array[own]), own

    cuda = Cuda(size)
    with use_backend(device(cuda)):
        found, gathered, shards = zip(*in_ranks(size, one_rank), strict=True)
    expected = np.concatenate([row[shard] for row, shard in zip(numbers, shards, strict=True)])
    assert same_in_all(found).tobytes() == expected.tobytes() == gathered[0].tobytes()
    assert gathered[1:] == (None,) * (size - 1)
    assert {name for name, *_ in cuda.nccl.calls} == {"bcast"}


def test_a_sum_neither_waits_for_the_gpu_nor_copies_to_the_host():
    def one_rank(base):
        ranks, array = choose_gpu(base), to_device(np.ones(5, np.float32))
        with measured() as meter:
            ranks.add_up(array)
            ranks.add_up(array, in_order=True)
        return meter

    with use_backend(device(Cuda(1))):
        (meter,) = in_ranks(1, one_rank)
    assert (meter.waits, meter.uploads, meter.downloads) == ([], [], [])


def test_every_process_of_a_machine_takes_a_gpu_of_its_own():
    cuda = Cuda(3)
    with use_backend(device(cuda)):
        chosen = in_ranks(3, lambda base: (choose_gpu(base).nccl.gpu, cuda.current.device))
    assert chosen == [(0, 0), (1, 1), (2, 2)]


def test_processes_of_another_machine_begin_with_gpu_0_again(monkeypatch):
    cuda, machines = Cuda(2), ["a", "b", "a", "b"]

    class OfMachines(ThreadRank):
        def collect(self, value):
            if isinstance(value, tuple) and len(value) == 3:
                value = machines[self.rank], *value[1:]
            return super().collect(value)

    def one_rank(base):
        monkeypatch.setattr(nccl, "NCCLCommunicator", lambda base: base)
        choose_gpu(OfMachines(base.rank, base.size, base.board))
        return cuda.current.device

    with use_backend(device(cuda)):
        assert in_ranks(4, one_rank) == [0, 0, 1, 1]


@pytest.mark.parametrize("cuda", [Cuda(gpus=2), Cuda(gpus=3, has_nccl=False)], ids=["2 GPUs", "no NCCL"])
def test_without_nccl_or_enough_gpus_the_sums_go_over_the_host(cuda):
    def one_rank(base):
        assert choose_gpu(base) is base
        array = to_device(np.ones(3))
        base.add_up(array)
        return to_host(array), cuda.current.device

    with use_backend(device(cuda)):
        results = in_ranks(3, one_rank)
    assert same_in_all([array for array, _ in results]).tolist() == [3, 3, 3]
    assert [gpu for _, gpu in results] == ([0, 1, 0] if cuda.runtime.getDeviceCount() == 2 else [0, 1, 2])


def test_numbers_of_the_host_and_objects_go_over_the_other_communicator():
    cuda = Cuda(2)

    def one_rank(base):
        ranks, numbers = choose_gpu(base), np.array([1.0, base.rank])
        ranks.add_up(numbers, in_order=True)
        ranks.wait()
        return numbers, ranks.collect(base.rank), ranks.rank, ranks.size, ranks.processes_here, ranks.is_root

    with use_backend(device(cuda)):
        for rank, (numbers, collected, *about) in enumerate(in_ranks(2, one_rank)):
            assert numbers.tolist() == [2, 1]
            assert collected == [0, 1]
            assert about == [rank, 2, 2, rank == 0]
    assert cuda.nccl.calls == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda a: a.astype(xp.complex128), TypeError, "NCCL takes float32, float64, int32, int64, got complex128"),
        (lambda a: a > 0, TypeError, "got bool"),
        (lambda a: a[::2], ValueError, "contiguous arrays, got one with gaps"),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_what_nccl_cannot_add_up_is_refused_before_anything_is_sent(change, error, message, ordered):
    cuda = Cuda(2)
    with pytest.raises(error, match=message):
        added_up(2, in_order=ordered, cuda=cuda, change=change)
    assert cuda.nccl.calls == []


def newly_connected():
    """What `connect` returns, of which it keeps nothing."""
    for cached in (connect, join):
        cached.cache_clear()
    try:
        return connect()
    finally:
        for cached in (connect, join):
            cached.cache_clear()


def test_connecting_with_the_backend_cupy_chooses_nccl(monkeypatch):
    """MPI is replaced by the communicator of a thread."""

    def one_rank(base):
        mpi = SimpleNamespace(MPICommunicator=lambda: base)
        monkeypatch.setitem(sys.modules, "minitransformer.training.parallel.mpi", mpi)
        monkeypatch.setenv("PMI_RANK", str(base.rank))
        monkeypatch.setenv("PMI_SIZE", "1")
        return newly_connected()

    with use_backend(device(Cuda(1))):
        (found,) = in_ranks(1, one_rank)
        assert isinstance(found, NCCLCommunicator)
        monkeypatch.delenv("PMI_RANK")
        assert newly_connected() is ONE_PROCESS
    (found,) = in_ranks(1, one_rank)
    assert isinstance(found, ThreadRank)
