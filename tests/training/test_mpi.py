"""Several processes over real MPI: the same bits as one process, one message for each error, and an end for all."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.files import read_safetensors
from minitransformer.training import CrossEntropyLoss, DataParallel
from minitransformer.training.parallel.communicator import ONE_PROCESS
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.processes import ProcessParallel
from tests.fails_mpi import FAILURES, TRAIN, end_of
from tests.helpers import relative_error
from tests.kills import same_weights
from tests.kills_mpi import kill_again_and_again
from tests.training.launching import MISSING, MPIEXEC, ROOT, Processes, launch

pytestmark = [pytest.mark.host_only, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

COPY = ("train", "copy", "--batch-size", 5, "--name", "copy")
QUICK = (*COPY, "--steps", 8, "--checkpoint-interval", 3)
LINE = "minitransformer train: "
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
long = partial(pytest.param, marks=pytest.mark.exhaustive)


def weights_in(folder, name="copy"):
    return read_safetensors(folder / "runs" / name / "model.safetensors")[0]


def in_mpi_processes(count, function, *arguments):
    """Call `function`, of this file, in `count` processes."""
    code = f"import sys; from tests.training.test_mpi import {function} as f; f(*sys.argv[1:])"
    command = [MPIEXEC, "-n", str(count), sys.executable, "-c", code, *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Weights of deterministic trainings in one process with so many micro batches, each computed once."""
    trained = {}

    def weights(parts):
        if parts not in trained:
            folder = tmp_path_factory.mktemp("alone")
            ended = launch(1, folder, *QUICK, "--deterministic", "--grad-accumulation-steps", parts)
            assert ended.status == 0, ended
            trained[parts] = weights_in(folder)
        return trained[parts]

    return weights


@pytest.mark.parametrize("count", [1, 3])
def test_deterministic_training_has_the_bits_of_one_process_with_as_many_micro_batches(count, alone, tmp_path):
    ended = launch(count, tmp_path, *QUICK, "--deterministic", "--json")
    assert (ended.status, ended.err) == (0, ""), ended
    assert same_weights(weights_in(tmp_path), alone(count))
    lines = ended.out.splitlines()
    assert [line.startswith("{") for line in lines].count(True) == 1
    assert json.loads(lines[-1])["steps"] == 8
    assert sum(line.startswith("copy: ") for line in lines) == 1


def check_sums():
    """In each process: sums in the order of the ranks, of vectors of any length, and in any order."""
    communicator = connect()
    size = communicator.size
    own = np.array([1e16, 1.0, -1e16, 3.0])  # in another order, the sum is another
    for dtype in (np.float32, np.float64, np.complex128):
        for length in (0, 1, 2, 7, 1000):
            everyones = [np.resize(np.roll(own, rank), length).astype(dtype) for rank in range(size)]
            total = everyones[0].copy()
            for other in everyones[1:]:
                total = total + other
            array = everyones[communicator.rank].copy()
            communicator.add_up(array, in_order=True)
            np.testing.assert_array_equal(array, total)
            array = np.full(length, communicator.rank + 1, dtype)
            communicator.add_up(array)
            np.testing.assert_array_equal(array, size * (size + 1) / 2)
    assert communicator.collect({"rank": communicator.rank}) == [{"rank": rank} for rank in range(size)]
    communicator.wait()
    assert communicator.processes_here == size


@pytest.mark.parametrize("count", [1, 3])
def test_sums_in_order_are_exact_and_those_in_any_order_complete(count):
    in_mpi_processes(count, "check_sums")


def gradient_of_a_step(communicator):
    """The gradient of one batch, in float32 and in any order of summation -> a vector."""
    config = TransformerConfig(vocab_size=29, d_model=32, num_heads=4, d_ff=64, num_layers=2, max_len=16, dropout=0.0)
    model = Transformer(config, seed=0)
    gradients = DataParallel(model, CrossEntropyLoss(), 1)
    if communicator.size > 1:
        gradients = ProcessParallel(gradients, gradients.loss_fn, communicator, model.parameters())
    gradients(get_task("copy").batch(np.random.default_rng(1), 30))
    return np.concatenate([parameter.grad.reshape(-1) for parameter in model.parameters()])


def save_gradient(path):
    """In each process: compute the gradient together; the root saves it."""
    gradient = gradient_of_a_step(connect())
    if connect().is_root:
        np.save(path, gradient)


def test_gradient_that_is_added_up_in_any_order_is_right_to_rounding(tmp_path):
    in_mpi_processes(3, "save_gradient", tmp_path / "gradient.npy")
    gradient = np.load(tmp_path / "gradient.npy")
    assert gradient.dtype == np.float32
    assert relative_error(gradient, gradient_of_a_step(ONE_PROCESS)) < 1e-6


@pytest.mark.parametrize(
    ("what", "rank", "status", "message"),
    [
        ("memory", 1, 2, "rank 1 of 2: not enough memory: Unable to allocate 1.00 GiB; no checkpoint has been saved"),
        long("memory", 0, 2, "not enough memory: Unable to allocate 1.00 GiB; no checkpoint has been saved"),
        ("disk", 0, 2, "cannot write runs/copy/checkpoints/step-00000003.safetensors: No space left on device; "),
        long("interrupt", 1, 130, "rank 1 of 2: stopped"),
        long("other steps", 1, 2, "--steps is 7 in rank 1, and 8 in rank 0"),
        ("other task", 1, 2, "the task is reverse in rank 1, and copy in rank 0"),
        long("other version", 1, 2, "the version of minitransformer is 0.0 in rank 1, and "),
    ],
)
def test_error_of_one_process_ends_all_and_is_printed_once(what, rank, status, message, tmp_path):
    interval = () if what == "disk" else ("--checkpoint-interval", 6)  # the others happen in step 5, or at the start
    ended = launch(2, tmp_path, *QUICK, *interval, what=what, rank=rank)
    assert ended.status == status, ended
    assert ended.err.startswith(LINE + message), ended
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("option", [long(()), ("--detect-anomaly",)])
def test_nan_in_one_process_is_explained_once(option, tmp_path):
    ended = launch(2, tmp_path, *QUICK, *option, what="nan", rank=1)
    assert ended.status == 1, ended
    assert ended.err.startswith(f"{LINE}step 5: ")
    assert ended.err.count("likely causes") == ended.err.count("rank 1 of 2") == 1
    assert ended.err.endswith("runs/copy alone would fail in the same way\n")


@pytest.mark.exhaustive
def test_bug_in_one_process_ends_all_with_its_traceback(tmp_path):
    ended = launch(2, tmp_path, *QUICK, what="bug", rank=1)
    assert ended.status == 1, ended
    assert ended.err.endswith("ZeroDivisionError: a mistake in the library\n")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("missing text", "rank 1 of 2: there is no file missing.txt"),
        long("other text", "--text is other.txt in rank 1"),
    ],
)
def test_text_that_one_process_lacks_or_that_differs_is_named(what, message, tmp_path):
    for name in ("my.txt", "other.txt"):
        tmp_path.joinpath(name).write_text(f"{name} has a few words in it. " * 200)
    small = ("--length", 16, "--d-model", 8, "--num-layers", 1, "--batch-size", 4, "--steps", 3)
    ended = launch(2, tmp_path, "train", "shakespeare", "--text", "my.txt", *small, what=what, rank=1)
    assert ended.status == 2, ended
    assert ended.err.startswith(LINE + message)
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        long(("bench", "tiny"), "minitransformer bench: several processes cannot share this command, only train"),
        (("train", "copy", "--fly"), "minitransformer train copy: unrecognized arguments: --fly"),
        (
            ("train", "copy", "--batch-size", 1),
            f"{LINE}--batch-size must be at least the number of processes, 2, got 1",
        ),
        long(("train", "--resume", "nowhere"), f"{LINE}there is no file "),
    ],
)
def test_what_all_processes_refuse_is_printed_once(arguments, message, tmp_path):
    ended = launch(2, tmp_path, *arguments)
    assert ended.status == 2, ended
    assert ended.err.startswith(message)
    assert ended.err.count("\n") == 1
    assert ended.out == ""


@pytest.mark.exhaustive
def test_help_is_printed_once(tmp_path):
    ended = launch(2, tmp_path, "train", "--help")
    assert ended.out.count("usage: ") == 1


LONG = (*COPY, "--steps", 100000, "--checkpoint-interval", 5, "--keep-checkpoints", 1000)


@pytest.mark.parametrize(
    ("receiver", "number"),
    [
        ("mpiexec", signal.SIGINT),
        long("mpiexec", signal.SIGTERM),
        ("rank 1", signal.SIGTERM),
        long("rank 1", signal.SIGINT),
    ],
)
def test_signal_to_mpiexec_or_to_one_process_saves_a_checkpoint_of_all(number, receiver, tmp_path):
    processes = Processes(2, tmp_path, *LONG)
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
    assert line == f"{LINE}stopped after step {int(newest.stem[5:]):,}, saved {newest}"
    assert advice == "resume with: mpiexec -n 2 minitransformer train --resume runs/copy"


def test_run_goes_on_in_another_number_of_processes_and_says_what_changes(tmp_path):
    processes = Processes(2, tmp_path, *LONG, "--deterministic")
    assert processes.wait_for(lambda: (tmp_path / "runs" / "copy" / "checkpoints").is_dir())
    processes.launcher.send_signal(signal.SIGTERM)
    assert processes.end().status == 130
    resume = ("train", "--resume", "runs/copy", "--steps")
    step = int(max((tmp_path / "runs" / "copy" / "checkpoints").iterdir()).stem[5:])
    ended = launch(3, tmp_path, *resume, step + 1)
    assert ended.status == 0, ended
    assert "number of processes 3 instead of 2: the results are not bit-identical to those of an " in ended.out


@pytest.mark.parametrize("count", [1, long(5)])
def test_run_whose_processes_are_killed_ends_within_seconds_and_with_the_same_bits(count, tmp_path):
    report = kill_again_and_again(tmp_path, count, np.random.default_rng(1))
    assert report.kills == count
    assert max(report.seconds) < 10
    assert all(same_weights(report.alone, weights) for weights in report.endings)


MESSAGES = {
    "--backend cupy": f"{LINE}rank 1 of 2: backend 'cupy' needs the package CuPy",
    "MINITRANSFORMER_BACKEND": "minitransformer: rank 1 of 2: backend 'cupy' needs the package CuPy",
    "unwritable --runs": f"{LINE}--runs is file in rank 1, and runs in rank 0",
    "unknown option": "minitransformer train copy: rank 1 of 2: unrecognized arguments: --fly (see ",
    "exit 3": "minitransformer: rank 1 has ended before it joined the others",
}
AS_ROOT = {
    "--backend cupy": f"{LINE}backend 'cupy' needs",
    "MINITRANSFORMER_BACKEND": "minitransformer: backend 'cupy' needs",
    "unwritable --runs": LINE,
    "unknown option": "minitransformer train copy: unrecognized",
    "exit 3": "minitransformer: rank 1 of 2: rank 0 has ended before it joined the others",
}


@linux
@pytest.mark.parametrize("failure", FAILURES)
def test_process_that_fails_before_the_training_ends_all_within_seconds(failure, tmp_path):
    ended = end_of(tmp_path, TRAIN, FAILURES[failure])
    assert (ended.status, len(ended.lines), ended.left) == (2, 1, 0), ended
    assert ended.lines[0].startswith(MESSAGES[failure])
    assert ended.seconds < 5


@linux
@pytest.mark.exhaustive
@pytest.mark.parametrize("failure", FAILURES)
def test_root_that_fails_before_the_training_ends_all_within_seconds(failure, tmp_path):
    ended = end_of(tmp_path, FAILURES[failure], TRAIN)
    assert (ended.status, len(ended.lines), ended.left) == (2, 1, 0), ended
    assert ended.lines[0].startswith(AS_ROOT[failure])
    assert ended.seconds < 5


@linux
def test_help_for_one_process_alone_is_a_disagreement(tmp_path):
    ended = end_of(tmp_path, TRAIN, (*TRAIN, "--help"))
    assert (ended.status, ended.left) == (2, 0), ended
    assert ended.lines == [f"{LINE}the command is --help or --version in rank 1, and train in rank 0"]


@linux
def test_sigterm_ends_processes_that_wait_for_one_that_does_not_join(tmp_path):
    waits = (sys.executable, "-c", "import time; time.sleep(60)")
    ended = end_of(tmp_path, TRAIN, waits, signal_after=(signal.SIGTERM, 2.0))
    assert ended.status
    assert ended.left == 0
    assert ended.seconds < 5


@linux
def test_process_that_starts_late_is_waited_for(tmp_path):
    late = ("sh", "-c", 'sleep 3; exec "$@"', "sh", *TRAIN)
    ended = end_of(tmp_path, TRAIN, late)
    assert (ended.status, ended.lines, ended.left) == (0, [], 0), ended
