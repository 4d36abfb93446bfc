"""`minitransformer bench --scaling`: step time and memory as batch, length, width and depth grow."""

import json

from minitransformer.bench import interleave, median, numpy_step, peak_memory
from minitransformer.bench.scaling import GROWTH, grown
from minitransformer.process import num_threads
from minitransformer.progress import tqdm

DROPOUT = 0.1


def run_scaling(arguments):
    """Time our step at growing sizes, print a table, draw the figure with the expected slopes."""
    from minitransformer.plotting import plot_scaling

    jobs = [(what, value) for what, (values, _) in GROWTH.items() for value in values]
    rows = []
    print(f"{'grows':<12} {'to':>6} {'step':>11} {'peak memory':>12}", flush=True)
    for what, value in tqdm(jobs, disable=None, leave=False, unit="size"):
        size = grown(what, value)
        times = interleave({"numpy": numpy_step(size, DROPOUT)}, arguments.seconds / 10)["numpy"]
        memory = peak_memory("numpy", size, DROPOUT, num_threads())
        rows.append({"what": what, "value": value, "seconds": median(times), "bytes": memory})
        tqdm.write(f"{what:<12} {value:>6} {1e3 * rows[-1]['seconds']:>8.1f} ms {memory / 1e6:>9.0f} MB")
    figure = arguments.plots / "bench_scaling.png"
    plot_scaling(rows, {what: power for what, (_, power) in GROWTH.items()}, figure)
    print(f"\nsaved {figure}")
    if arguments.json:
        print(json.dumps({"threads": num_threads(), "rows": rows}))
    return 0
