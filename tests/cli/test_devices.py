"""`minitransformer devices` and `bench --device-report`: what can be shown of them without a GPU."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minitransformer
from experiments import device as device_report
from experiments.measuring import device_steps as device
from experiments.measuring import parity
from minitransformer.backend import BackendUnavailableError, use_backend
from minitransformer.system import devices
from minitransformer.system.devices import list_devices, version_of
from tests.cli.run import run
from tests.strict.strict import strict

ROOT = Path(minitransformer.__file__).parents[1]


def no_gpu():
    try:
        with use_backend("cupy"):
            return False
    except BackendUnavailableError:
        return True


without_gpu = pytest.mark.skipif(not no_gpu(), reason="there is a GPU here")


def test_the_cpu_is_always_listed_and_usable(capsys):
    status, out, err = run(capsys, "devices", "--json")
    assert (status, err) == (0, "")
    cpu = json.loads(out.splitlines()[-1])[0]
    assert (cpu["backend"], cpu["usable"], cpu["NumPy"]) == ("numpy", True, np.__version__)
    assert cpu["cores"] == os.cpu_count()


@pytest.mark.parametrize(
    ("version", "shown"),
    [("4.1.2", "with mpiexec and mpi4py 4.1.2"), (None, "after pip install -e '.[mpi]'")],
)
def test_what_several_processes_need_is_shown_in_80_columns(version, shown, capsys, monkeypatch):
    def find(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(devices.importlib.metadata, "version", find)
    (line,) = [line for line in run(capsys, "devices").out.splitlines() if "several processes" in line]
    assert line.endswith(shown)
    assert len(line) <= 80


@without_gpu
def test_a_missing_gpu_is_explained_and_not_an_error(capsys):
    gpu = list_devices()[1]
    assert (gpu["backend"], gpu["usable"]) == ("cupy", False)
    assert "CuPy" in gpu["name"]
    assert "cupy: not usable here" in run(capsys, "devices").out


def test_cudas_version_numbers_are_read_as_people_write_them():
    assert [version_of(number) for number in (12040, 13000, 11080)] == ["12.4", "13.0", "11.8"]


def test_every_layer_agrees_on_the_stand_in_and_on_numpy():
    with use_backend(strict):
        errors = parity.compare_layers("float32")
    assert errors == dict.fromkeys(parity.LAYERS, 0.0)  # the same arithmetic underneath


def test_training_agrees_on_the_stand_in_and_on_numpy(monkeypatch):
    monkeypatch.setattr(parity, "STEPS", 3)
    with use_backend(strict):
        errors = parity.compare_training("float64")
    assert max(errors.values()) < 1e-14  # the gradient's norm is summed in another order


def test_a_difference_between_two_devices_is_seen(monkeypatch):
    run_layer = parity.run_layer

    def disturbed(name, dtype):
        factor = 1.0 if isinstance(parity.to_device(np.ones(1)), np.ndarray) else 1.01
        return {what: factor * found for what, found in run_layer(name, dtype).items()}

    monkeypatch.setattr(parity, "run_layer", disturbed)
    with use_backend(strict):
        errors = parity.compare_layers("float64")
    assert all(error == pytest.approx(0.01) for error in errors.values())


def test_a_part_that_fails_is_reported(monkeypatch):
    def broken(progress):
        raise RuntimeError("no luck")

    monkeypatch.setattr(device_report, "PARTS", {"first": broken})
    row = device_report.run_part("first")
    assert not row["passed"]
    assert "RuntimeError: no luck" in "\n".join(row["lines"])
    json.dumps(row)


def test_a_step_slower_than_its_limit_does_not_pass(monkeypatch):
    rows = [{"size": "tiny", "tf32": False, "ours": 1.0, "pytorch": 0.9, "ratio": 0.9}]
    monkeypatch.setattr(device_report, "measure_steps", lambda names, tf32: rows)
    assert not device_report.measure_speed(lambda share: None)[2]
    rows[0] |= {"pytorch": 1.1, "ratio": 1.1}
    assert device_report.measure_speed(lambda share: None)[2]


def test_steps_are_timed_on_the_backend_in_use(monkeypatch):
    monkeypatch.setattr(device, "TURNS", 1)
    monkeypatch.setattr(device, "CALLS", 2)
    monkeypatch.setattr(device, "pytorch_sees_device", lambda: False)
    (row,) = device.measure_here(["tiny"], tf32=False)
    assert row["size"] == "tiny"
    assert row["ours"] > 0
    assert row["ratio"] is None


@pytest.mark.exhaustive
def test_the_report_runs_from_the_source_tree_without_what_a_bare_machine_lacks(tmp_path):
    """As on a lent GPU machine: no tqdm, safetensors or threadpoolctl, nothing installed; here on the CPU."""
    code = (
        "import sys\n"
        "for name in ('tqdm', 'safetensors', 'threadpoolctl', 'cupy', 'torch'): sys.modules[name] = None\n"
        "from experiments.device import run_part\n"
        "from experiments.measuring import parity\n"
        "parity.STEPS = 3\n"
        "report = run_part('agreement with NumPy')\n"
        "from minitransformer.cli import main\n"
        "sys.exit(main(['devices']) or not report['passed'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "lessons")))}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
