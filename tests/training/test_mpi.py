"""Several processes over real MPI: the same bits as one process, one message for each error, and an end for all."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.files import read_safetensors
from minitransformer.training import CrossEntropyLoss, DataParallel, clipping
from minitransformer.training.parallel.communicator import ONE_PROCESS
from minitransformer.training.parallel.processes import ProcessParallel
from tests.helpers import relative_error
from tests.kills import same_weights
from tests.kills_mpi import kill_again_and_again
from tests.training.launching import MISSING, MPIEXEC, PATHS, ROOT, Processes, launch

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.host_only,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

COPY = ("train", "copy", "--batch-size", 5, "--name", "copy")
QUICK = (*COPY, "--steps", 8, "--checkpoint-interval", 3)
LINE = "minitransformer train: "
weekly = partial(pytest.param, marks=pytest.mark.weekly)


def weights_in(folder):
    return read_safetensors(folder / "runs" / "copy" / "model.safetensors")[0]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Weights of a deterministic training in one process, with three micro batches."""
    folder = tmp_path_factory.mktemp("alone")
    ended = launch(1, folder, *QUICK, "--deterministic", "--grad-accumulation-steps", 3)
    assert ended.status == 0, ended
    return weights_in(folder)


@pytest.mark.parametrize("option", [weekly(()), ("--shard-optimizer",)], ids=["unsharded", "sharded"])
def test_deterministic_training_has_the_bits_of_one_process_with_as_many_micro_batches(option, alone, tmp_path):
    ended = launch(3, tmp_path, *QUICK, "--deterministic", "--json", *option)
    assert (ended.status, ended.err) == (0, ""), ended
    assert same_weights(weights_in(tmp_path), alone)
    lines = ended.out.splitlines()
    assert [line.startswith("{") for line in lines].count(True) == 1
    assert json.loads(lines[-1])["steps"] == 8
    assert sum(line.startswith("copy: ") for line in lines) == 1


def check_sum(communicator, length, kind):
    """A sum in the order of the ranks, also in its two halves, is that of a loop, and in any order nearly."""
    size, rank = communicator.size, communicator.rank
    arrays = np.random.default_rng(0).standard_normal((size, length)).astype(kind)
    total = arrays[0].copy()
    for other in arrays[1:]:
        total += other
    own = communicator.shards(length)[rank]
    halves, in_order, in_any_order = (arrays[rank].copy() for _ in range(3))
    communicator.reduce_scatter(halves)
    half = halves[own].copy()
    communicator.all_gather(halves)
    communicator.add_up(in_order, in_order=True)
    communicator.add_up(in_any_order)
    whole = communicator.gather(half)
    assert (whole is not None) == communicator.is_root
    for found in (halves, in_order, *[whole] * communicator.is_root):
        assert found.dtype == kind
        assert found.tobytes() == total.tobytes()
    np.testing.assert_allclose(in_any_order, total, rtol=1e-5, atol=1e-6)


def gradient_of_a_step(communicator):
    """The gradient of one batch, in float32 and in any order of summation -> a vector."""
    config = TransformerConfig(vocab_size=29, d_model=32, num_heads=4, d_ff=64, num_layers=2, max_len=16, dropout=0.0)
    model = Transformer(config, seed=0)
    gradients = DataParallel(model, CrossEntropyLoss(), 1)
    if communicator.size > 1:
        gradients = ProcessParallel(gradients, gradients.loss_fn, communicator, model.parameters())
    gradients(get_task("copy").batch(np.random.default_rng(1), 30))
    return np.concatenate([parameter.grad.reshape(-1) for parameter in model.parameters()])


def communicate():
    """What each of several processes does in the test below."""
    from minitransformer.training.parallel import mpi

    communicator = mpi.MPICommunicator()
    found = gradient_of_a_step(communicator)
    assert found.dtype == np.float32
    assert relative_error(found, gradient_of_a_step(ONE_PROCESS)) < 1e-6
    clipping.BLOCK, mpi.PIECE = 10, 7
    for kind in ("float32", "float64", "complex128"):
        for length in (0, 1, 9, 350):
            check_sum(communicator, length, kind)
    size = communicator.size
    assert communicator.collect({"rank": communicator.rank}) == [{"rank": rank} for rank in range(size)]
    communicator.wait()
    assert communicator.processes_here == size
    if sys.platform == "linux":
        shared = [line for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/shm/mpich" in line]
        assert [line for line in shared if not line.endswith("(deleted)")] == [], "it would stay after a failure"


@pytest.mark.parametrize("count", [weekly(1), 3])
def test_sums_in_order_are_exact_and_those_in_any_order_and_a_gradient_right_to_rounding(count):
    code = "from tests.training.test_mpi import communicate; communicate()"
    command = [MPIEXEC, "-n", str(count), sys.executable, "-m", "mpi4py", "-c", code]
    environment = {**os.environ, "PYTHONPATH": PATHS}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("what", "rank", "status", "message"),
    [
        ("memory", 1, 2, f"{LINE}rank 1 of 2: not enough memory: Unable to allocate 1.00 GiB; no checkpoint has been "),
        weekly(
            "disk", 0, 2, f"{LINE}cannot write runs/copy/checkpoints/step-00000003.safetensors: No space left on device"
        ),
        ("unknown option", 1, 2, "minitransformer train copy: rank 1 of 2: unrecognized arguments: --fly (see "),
        weekly("exit", 1, 2, f"{LINE}rank 1 of 2: the process ends before its work is done"),
        ("stop", 1, 2, f"{LINE}another process has not answered for 3 seconds (--timeout)"),
        weekly("memory", 0, 2, f"{LINE}not enough memory: Unable to allocate 1.00 GiB; no checkpoint has been saved"),
        weekly("interrupt", 1, 130, f"{LINE}rank 1 of 2: stopped"),
        weekly("other steps", 1, 2, f"{LINE}--steps is 7 in rank 1, and 8 in rank 0"),
        weekly("other task", 1, 2, f"{LINE}the task is reverse in rank 1, and copy in rank 0"),
        weekly("other version", 1, 2, f"{LINE}the version of minitransformer is 0.0 in rank 1, and "),
        weekly("help", 1, 2, f"{LINE}the command is --help or --version in rank 1, and train in rank 0"),
        weekly("backend", 1, 2, f"{LINE}rank 1 of 2: backend 'cupy' needs the package CuPy"),
        weekly("backend", 0, 2, f"{LINE}backend 'cupy' needs the package CuPy"),
        weekly("runs in a file", 1, 2, f"{LINE}--runs is pid-1 in rank 1, and runs in rank 0"),
        weekly("unknown option", 0, 2, "minitransformer train copy: unrecognized arguments: --fly (see "),
        weekly("end before the others are joined", 1, 2, f"{LINE}some processes have not joined the others within "),
    ],
)
def test_error_of_one_process_ends_all_and_is_printed_once(what, rank, status, message, tmp_path):
    interval = () if what == "disk" else ("--checkpoint-interval", 6)  # the others happen in step 5, or at the start
    timeout = ("--timeout", 0.05) if what == "stop" else ()
    ended = launch(2, tmp_path, *QUICK, *interval, *timeout, what=what, rank=rank)
    assert ended.status == status, ended
    assert ended.err.startswith(message), ended
    assert ended.err.count("\n") == 1


@pytest.mark.weekly
@pytest.mark.parametrize("option", [("--detect-anomaly",), ()])
def test_nan_in_one_process_is_explained_once(option, tmp_path):
    ended = launch(2, tmp_path, *QUICK, *option, what="nan", rank=1)
    assert ended.status == 1, ended
    assert ended.err.startswith(f"{LINE}step 5: ")
    assert ended.err.count("likely causes") == ended.err.count("rank 1 of 2") == 1
    assert ended.err.endswith("runs/copy alone would fail in the same way\n")


@pytest.mark.weekly
def test_bug_in_one_process_ends_all_with_its_traceback(tmp_path):
    ended = launch(2, tmp_path, *QUICK, what="bug", rank=1)
    assert ended.status == 1, ended
    assert ended.err.endswith("ZeroDivisionError: a mistake in the library\n")


def test_what_all_processes_refuse_is_printed_once(tmp_path):
    ended = launch(2, tmp_path, "train", "copy", "--fly")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert ended.err.startswith("minitransformer train copy: unrecognized arguments: --fly")


@pytest.mark.weekly
def test_help_is_printed_once(tmp_path):
    ended = launch(2, tmp_path, "train", "--help")
    assert ended.out.count("usage: ") == 1


@pytest.mark.parametrize(
    ("receiver", "number"),
    [
        ("rank 1", signal.SIGTERM),
        weekly("mpiexec", signal.SIGINT),
        weekly("mpiexec", signal.SIGTERM),
        weekly("rank 1", signal.SIGINT),
    ],
)
def test_signal_to_mpiexec_or_to_one_process_saves_a_checkpoint_of_all_which_another_number_resumes(
    receiver, number, tmp_path
):
    long = (*COPY, "--steps", 100000, "--checkpoint-interval", 5, "--keep-checkpoints", 1000, "--deterministic")
    processes = Processes(2, tmp_path, *long)
    checkpoints = tmp_path / "runs" / "copy" / "checkpoints"
    assert processes.wait_for(lambda: any(checkpoints.glob("step-*.safetensors")))
    if receiver == "mpiexec":
        processes.launcher.send_signal(number)
    else:
        os.kill(processes.pids()[1], number)
    ended = processes.end()
    assert ended.status == 130, ended
    (line, advice) = (line for line in ended.err.splitlines() if not line.startswith("[mpiexec"))
    newest = max(checkpoints.iterdir()).relative_to(tmp_path)
    step = int(newest.stem[5:])
    assert line == f"{LINE}stopped after step {step:,}, saved {newest}"
    assert advice == "resume with: mpiexec -n 2 minitransformer train --resume runs/copy"
    again = launch(3, tmp_path, "train", "--resume", "runs/copy", "--steps", step + 1)
    assert again.status == 0, again
    assert "from now on 3 processes instead of 2\n" in again.out


@pytest.mark.weekly
def test_run_whose_processes_are_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    report = kill_again_and_again(tmp_path, 5, np.random.default_rng(1))
    assert report.kills == 5
    assert all(same_weights(report.alone, weights) for weights in report.endings)


@pytest.mark.weekly
def test_sigterm_ends_processes_that_wait_for_one_that_does_not_join(tmp_path):
    processes = Processes(2, tmp_path, *QUICK, what="never there", rank=1)
    assert processes.wait_for(lambda: len(processes.pids()) == 2)
    processes.launcher.send_signal(signal.SIGTERM)
    assert processes.end(patience=30).status


@pytest.mark.weekly
def test_process_that_starts_late_is_waited_for(tmp_path):
    ended = launch(2, tmp_path, *QUICK, what="late", rank=1)
    assert (ended.status, ended.err) == (0, ""), ended
