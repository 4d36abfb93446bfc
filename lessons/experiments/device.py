"""Are gradients, agreement with NumPy, toy tasks and speed on a GPU as they should be?

Each part is a function (progress) -> (its lines, its numbers, whether it passed). If a part raises an error, the report
says so and the other parts still run.
"""

import platform
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.device_steps import DEVICE_SIZES, measure_steps
from experiments.measuring.parity import STEPS, compare_layers, compare_training
from experiments.measuring.steps import train_toy_task
from experiments.report import Options, Rows, Table, as_text, listed
from minitransformer.backend import backend_name, use_backend
from minitransformer.evaluation import decode_and_score
from minitransformer.gradcheck.subjects import SUBJECTS
from minitransformer.system.devices import describe_device
from minitransformer.system.progress import tqdm

ON_ANY_DEVICE = True
SECONDS = {True: 600, False: 600}
THREADS = None
BOUNDS = {"float32": 1e-5, "float64": 1e-12}  # of relative errors against NumPy
TESTED = 1000  # held-out sequences of a toy task
LIMITS = {"tiny": 1.0, "base-like": 1.3, "base": 1.3}  # our time over PyTorch's, in float32 without TF32
Progress = Callable[[float], Any]  # is called with the share of a part that is done
Part = tuple[list[str], dict[str, Any], bool]


def rows(options: Options) -> Rows:
    """Run every part on the GPU. Without one, BackendUnavailableError, unless --backend asks for another device."""
    if not options.backend and backend_name() == "numpy":
        use_backend("cupy")
    with tqdm(total=len(PARTS), leave=False, unit="part", bar_format="{l_bar}{bar}| {postfix}") as bar:

        def progress(part: str, share: float) -> None:
            bar.n = list(PARTS).index(part) + share
            bar.set_postfix_str(part)

        return {"device": [describe_machine()], "parts": [run_part(name, partial(progress, name)) for name in PARTS]}


def run_part(name: str, progress: Progress = lambda share: None) -> dict[str, Any]:
    """Run a part of PARTS -> its lines, its numbers, whether it passed, and how long it took."""
    start = time.perf_counter()
    try:
        lines, numbers, passed = PARTS[name](progress)
    except Exception as error:  # the other parts are still useful
        lines, numbers, passed = [f"failed: {type(error).__name__}: {error}"], {}, False
        numbers["traceback"] = traceback.format_exc()
    return {"part": name, "passed": passed, "seconds": time.perf_counter() - start, "lines": lines, **numbers}


def tables(rows: Rows) -> list[Table]:
    """The device, and one line for each part."""
    (about,) = rows["device"]
    device = Table("", ["device", ""], [[key, str(value)] for key, value in about.items()])
    parts = [{**row, "outcome": "passed" if row["passed"] else "NOT PASSED"} for row in rows["parts"]]
    return [device, listed("", parts, {"part": ("part",), "": ("outcome",), "seconds": ("seconds", ".0f")})]


def findings(rows: Rows) -> list[str]:
    """What each part printed."""
    return [f"{row['part']}: {line}" for row in rows["parts"] for line in row["lines"]]


def passed(rows: Rows) -> bool:
    """Whether all parts passed."""
    return all(row["passed"] for row in rows["parts"])


def check_gradients_on_device(progress: Progress) -> Part:
    """Check every backward pass of the table along random directions, by complex step on the device."""
    reports = []
    for done, subject in enumerate(SUBJECTS.values()):
        reports.append(subject.check(max_entries=0))
        progress(done / len(SUBJECTS))
    worst = max(report.worst.error for report in reports)
    failed = [report.name for report in reports if not report.passed]
    lines = [f"{len(reports)} checks, {len(failed)} wrong, worst relative error {worst:.1e}", *failed]
    return lines, {"checks": len(reports), "failed": failed, "worst": worst}, not failed


def check_parity(progress: Progress) -> Part:
    """Compare every layer, and a training run, with NumPy."""
    lines, numbers, passed = [], {}, True
    for done, (dtype, bound) in enumerate(BOUNDS.items()):
        layers = compare_layers(dtype)
        training = compare_training(dtype)
        worst = max(layers, key=layers.__getitem__)
        lines.append(
            f"{dtype}: layers {layers[worst]:.1e} ({worst}), weights after one step "
            f"{training['after_one_step']:.1e}, losses of {STEPS} steps {training['losses']:.1e}"
        )
        numbers[dtype] = {"layers": layers, **training}
        passed &= max(layers[worst], training["after_one_step"]) <= bound
        progress((done + 1) / len(BOUNDS))
    return lines, numbers, passed


def solve_tasks(progress: Progress) -> Part:
    """Train and test copy and reverse on the device."""
    lines, numbers = [], {}
    for done, name in enumerate(("copy", "reverse")):
        model, task, history = train_toy_task(name)
        _, score = decode_and_score(model, task.held_out_batch(np.random.default_rng(3), TESTED))
        steps, seconds = len(history.losses), history.seconds
        lines.append(f"{name}: {score:.2%} of {TESTED:,} held-out sequences exact, {steps:,} steps in {seconds:.1f} s")
        numbers[name] = {"exact_match": score, "seconds": seconds, "steps": steps}
        progress((done + 1) / 2)
    return lines, numbers, all(result["exact_match"] >= 0.99 for result in numbers.values())


def measure_speed(progress: Progress) -> Part:
    """Time a training step against PyTorch eager on the same device, with TF32 off and on; on a CPU only small ones."""
    on_gpu = backend_name() == "cupy"
    names = list(DEVICE_SIZES) if on_gpu else ["tiny", "small"]
    rows = []
    for done, tf32 in enumerate((False, True) if on_gpu else (False,)):
        rows += measure_steps(names, tf32)
        progress((done + 1) / 2)
    times: dict[str, tuple] = {"ours (ms)": ("ours", ".3f", 1e3), "PyTorch (ms)": ("pytorch", ".3f", 1e3)}
    about = {"size": ("size",), "TF32": (lambda row: "on" if row["tf32"] else "off",)}
    table = listed("", rows, {**about, **times, "PyTorch / ours": ("ratio", ".2f")})
    judged = [row for row in rows if row["ratio"] and not row["tf32"] and row["size"] in LIMITS]
    return as_text(table).splitlines(), {"rows": rows}, all(1.0 / row["ratio"] <= LIMITS[row["size"]] for row in judged)


PARTS: dict[str, Callable[[Progress], Part]] = {
    "gradients": check_gradients_on_device,
    "agreement with NumPy": check_parity,
    "toy tasks": solve_tasks,
    "speed": measure_speed,
}


def describe_machine() -> dict[str, Any]:
    """The backend, the device and the versions."""
    versions = {"Python": platform.python_version(), "NumPy": np.__version__}
    return {"backend": backend_name(), **describe_device(), **versions}
