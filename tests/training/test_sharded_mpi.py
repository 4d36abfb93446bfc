"""The halves of a sum over MPI, and a sharded training as a user starts it: the same bits as unsharded."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minitransformer.training.checkpoint import load_checkpoint
from tests.helpers import same

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
pytestmark = [
    pytest.mark.host_only,
    pytest.mark.skipif(
        not MPIEXEC or not importlib.util.find_spec("mpi4py"),
        reason="mpi4py or mpiexec is missing: pip install -e '.[mpi]'",
    ),
]

HALVES = """
import numpy as np
from minitransformer.training import clipping
from minitransformer.training.parallel import mpi
clipping.BLOCK, mpi.PIECE = 10, 7
communicator = mpi.MPICommunicator()
for kind in ("float32", "float64", "complex128"):
    for length in (0, 1, 9, 350):
        arrays = np.random.default_rng(0).standard_normal((communicator.size, length)).astype(kind)
        total = arrays[0].copy()
        for other in arrays[1:]:
            total += other
        own = communicator.shards(length)[communicator.rank]
        for in_order in (True, False):
            array, summed = (arrays[communicator.rank].copy() for _ in range(2))
            communicator.reduce_scatter(array)
            half = array[own].copy()
            communicator.all_gather(array)
            communicator.add_up(summed, in_order)
            whole = communicator.gather(half)
            for found in (array, *[summed] * in_order, *[whole] * communicator.is_root):
                assert found.dtype == kind and found.tobytes() == total.tobytes()
            np.testing.assert_allclose(summed, total, rtol=1e-5, atol=1e-6)
            assert (whole is not None) == communicator.is_root
print("done")
"""


def mpiexec(count, *arguments, folder):
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [MPIEXEC, "-n", str(count), sys.executable, "-m", "mpi4py", *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("count", [1, 3])
def test_the_halves_of_a_sum_make_the_sum_in_the_order_of_the_ranks(count, tmp_path):
    assert mpiexec(count, "-c", HALVES, folder=tmp_path).count("done") == count


def test_a_sharded_training_gives_the_bits_of_an_unsharded_one(tmp_path):
    def weights(name, *options):
        train = ["-m", "minitransformer", "train", "reverse", "--steps", "4", "--batch-size", "8", "--deterministic"]
        mpiexec(2, *train, "--name", name, *options, folder=tmp_path)
        model = load_checkpoint(tmp_path / "runs" / name / "model.safetensors")[0]
        return np.concatenate([parameter.data.reshape(-1) for parameter in model.parameters()])

    assert same(
        weights("sharded", "--shard-optimizer", "--weight-decay", "0.1"), weights("whole", "--weight-decay", "0.1")
    )
