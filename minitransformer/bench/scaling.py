"""`minitransformer bench --scaling`: how the cost of a training step grows with batch, length, width and depth."""

from pathlib import Path
from typing import Any

from minitransformer.bench.figures import plot_scaling
from minitransformer.bench.sizes import Size
from minitransformer.bench.steps import numpy_step
from minitransformer.bench.timing import interleave, median, peak_memory
from minitransformer.system.process import blas_threads
from minitransformer.system.progress import tqdm

BASE = Size("scaling", vocab_size=1000, d_model=128, num_heads=4, d_ff=512, num_layers=2, batch=16, length=32)
DROPOUT = 0.1
# what grows: its values, and the power of it that the step's time should approach for large values
GROWTH = {
    "batch": ((2, 4, 8, 16, 32, 64, 128), 1),
    "length": ((8, 16, 32, 64, 128, 256, 512), 2),
    "d_model": ((32, 64, 128, 256, 512, 1024), 2),
    "num_layers": ((1, 2, 4, 8, 16), 1),
}


def run(seconds: float, folder: Path) -> dict[str, Any]:
    """Time our step at each size of GROWTH for a tenth of `seconds` -> {"threads", "rows"}.

    Prints a table, and draws bench_scaling.png into `folder` with the expected slopes.
    """
    jobs = [(what, value) for what, (values, _) in GROWTH.items() for value in values]
    rows = []
    print(f"{'size':<12} {'value':>6} {'step':>11} {'peak memory':>12}", flush=True)
    for what, value in tqdm(jobs, leave=False, unit="size"):
        size = grown(what, value)
        times = interleave({"numpy": numpy_step(size, DROPOUT)}, seconds / 10)["numpy"]
        memory = peak_memory("numpy", size, DROPOUT, blas_threads())
        rows.append({"what": what, "value": value, "seconds": median(times), "bytes": memory})
        tqdm.write(f"{what:<12} {value:>6} {1e3 * rows[-1]['seconds']:>8.1f} ms {memory / 1e6:>9.0f} MB")
    figure = folder / "bench_scaling.png"
    plot_scaling(rows, {what: power for what, (_, power) in GROWTH.items()}, figure)
    print(f"\nsaved {figure}")
    return {"threads": blas_threads(), "rows": rows}


def grown(what: str, value: int) -> Size:
    """BASE with one field changed; d_ff stays 4 d_model, as in the paper, and each head keeps 32 features."""
    changes: dict[str, Any] = {what: value}
    if what == "d_model":
        changes |= {"d_ff": 4 * value, "num_heads": value // 32}
    return BASE._replace(**changes)
