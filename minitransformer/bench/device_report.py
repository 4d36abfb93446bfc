"""Everything that is to be true on a GPU, measured there: gradients, agreement with NumPy, toy tasks, speed.

Each part is a function that returns its lines and numbers. A part that fails says so and lets the others run.
"""

import platform
import time
import traceback

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.bench.device import DEVICE_SIZES, measure_steps
from minitransformer.bench.parity import STEPS, compare_layers, compare_training
from minitransformer.data import get_task
from minitransformer.devices import describe_device
from minitransformer.evaluation import decode_and_score
from minitransformer.gradcheck.cases import CASES
from minitransformer.models import Transformer, named_config
from minitransformer.recipes import RECIPES

BOUNDS = {"float32": 1e-5, "float64": 1e-12}  # of relative errors against NumPy
TESTED = 1000  # held-out sequences of a toy task
LIMITS = {"tiny": 1.0, "base-like": 1.3, "base": 1.3}  # our time over PyTorch's, in float32 without TF32


def check_gradients_on_device(progress):
    """Every backward pass of the table, along random directions, by complex step on the device."""
    reports = []
    for done, case in enumerate(CASES.values()):
        reports.append(case.run(max_entries=0))
        progress(done / len(CASES))
    worst = max(report.worst.error for report in reports)
    failed = [report.name for report in reports if not report.passed]
    lines = [f"{len(reports)} checks, {len(failed)} wrong, worst relative error {worst:.1e}", *failed]
    return lines, {"checks": len(reports), "failed": failed, "worst": worst}, not failed


def check_parity(progress):
    """Every layer, and a training run, against NumPy."""
    lines, numbers, passed = [], {}, True
    for done, (dtype, bound) in enumerate(BOUNDS.items()):
        layers = compare_layers(dtype)
        training = compare_training(dtype)
        worst = max(layers, key=layers.get)
        lines.append(
            f"{dtype}: layers {layers[worst]:.1e} ({worst}), weights after one step "
            f"{training['after_one_step']:.1e}, losses of {STEPS} steps {training['losses']:.1e}"
        )
        numbers[dtype] = {"layers": layers, **training}
        passed &= max(layers[worst], training["after_one_step"]) <= bound
        progress((done + 1) / len(BOUNDS))
    return lines, numbers, passed


def solve_tasks(progress):
    """Copy and reverse, trained and tested on the device."""
    lines, numbers = [], {}
    for done, name in enumerate(("copy", "reverse")):
        task, recipe = get_task(name), RECIPES[name]
        model = Transformer(named_config("tiny", len(task.vocabulary), dropout=0.0))
        history = recipe.train(recipe.defaults, model, task)
        _, score = decode_and_score(model, task.held_out_batch(np.random.default_rng(3), TESTED))
        lines.append(
            f"{name}: {score:.2%} of {TESTED:,} held-out sequences exact, {recipe.defaults.steps:,} steps in "
            f"{history.seconds:.1f} s"
        )
        numbers[name] = {"exact_match": score, "seconds": history.seconds, "steps": recipe.defaults.steps}
        progress((done + 1) / 2)
    return lines, numbers, all(result["exact_match"] >= 0.99 for result in numbers.values())


def measure_speed(progress):
    """A training step against PyTorch eager on the same device, with TF32 off and on; on a CPU, small ones alone."""
    on_gpu = backend_name() == "cupy"
    names = list(DEVICE_SIZES) if on_gpu else ["tiny", "small"]
    rows = []
    for done, tf32 in enumerate((False, True) if on_gpu else (False,)):
        rows += measure_steps(names, tf32)
        progress((done + 1) / 2)
    lines = [f"{'size':<10} {'TF32':>5} {'ours':>11} {'PyTorch':>11} {'PyTorch / ours':>15}"]
    for row in rows:
        theirs = f"{1e3 * row['pytorch']:.3f} ms" if row["ratio"] else "-"
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
        tf32 = "on" if row["tf32"] else "off"
        lines.append(f"{row['size']:<10} {tf32:>5} {1e3 * row['ours']:>8.3f} ms {theirs:>11} {ratio:>15}")
    judged = [row for row in rows if row["ratio"] and not row["tf32"] and row["size"] in LIMITS]
    return lines, {"rows": rows}, all(1.0 / row["ratio"] <= LIMITS[row["size"]] for row in judged)


PARTS = {
    "gradients": check_gradients_on_device,
    "agreement with NumPy": check_parity,
    "toy tasks": solve_tasks,
    "speed": measure_speed,
}


def make_report(parts=tuple(PARTS), show=print, progress=lambda part, share: None):
    """Run the parts -> dict that JSON can hold; `show` gets the lines of the table as they come."""
    report = {"date": time.strftime("%Y-%m-%d"), "machine": describe_machine(), "parts": {}}
    for key, value in report["machine"].items():
        show(f"{key:<12} {value}")
    for name in parts:
        start = time.perf_counter()
        try:
            lines, numbers, passed = PARTS[name](lambda share, name=name: progress(name, share))
        except Exception as error:  # the other parts are worth having
            lines, numbers, passed = [f"failed: {type(error).__name__}: {error}"], {}, False
            numbers["traceback"] = traceback.format_exc()
        seconds = time.perf_counter() - start
        report["parts"][name] = {"passed": passed, "seconds": seconds, **numbers}
        show(f"\n{name}: {'passed' if passed else 'NOT PASSED'} ({seconds:.0f} s)")
        for line in lines:
            show(f"  {line}")
    report["passed"] = all(part["passed"] for part in report["parts"].values())
    return report


def describe_machine():
    """What the numbers were measured on."""
    versions = {"Python": platform.python_version(), "NumPy": np.__version__}
    return {"backend": backend_name(), **describe_device(), **versions}
