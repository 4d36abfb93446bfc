"""`minitransformer bench --decoding`: greedy decoding with a kv against PyTorch eager, and its cost as a text grows."""

import json

from minitransformer.bench.decoding import BATCHES, COUNT, LONG, cost_per_token, numpy_decoding, pytorch_decoding
from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.timing import interleave, median
from minitransformer.process import keep_freed_memory, num_threads
from minitransformer.progress import tqdm

SIZES = ("tiny", "small")


def run_decoding(arguments):
    """Time both sides in turns, print the table; time every token of a long text, draw the figure."""
    from minitransformer.plotting import plot_decoding

    keep_freed_memory()
    with_torch, threads = torch_is_installed(), num_threads()
    print(f"decoder-only, greedy, {COUNT} tokens behind one, float32, {threads} threads, tokens per second\n")
    print(f"{'size':<8} {'batch':>5} {'ours':>10} {'PyTorch':>10} {'ratio':>6}", flush=True)
    rows = []
    for name, batch in tqdm([(name, batch) for name in SIZES for batch in BATCHES], disable=None, leave=False):
        calls = {"numpy": numpy_decoding(name, batch)}
        if with_torch:
            calls["pytorch"] = pytorch_decoding(name, batch, threads)
        rates = {key: batch * COUNT / median(times) for key, times in interleave(calls, arguments.seconds).items()}
        rows.append({"size": name, "batch": batch, "numpy": rates["numpy"], "pytorch": rates.get("pytorch")})
        theirs, ratio = ("", "")
        if with_torch:
            theirs, ratio = f"{rates['pytorch']:,.0f}", f"{rates['numpy'] / rates['pytorch']:.2f}"
        tqdm.write(f"{name:<8} {batch:>5} {rates['numpy']:>10,.0f} {theirs:>10} {ratio:>6}")
    seconds, again = cost_per_token("small", 1)
    figure = arguments.plots / "bench_decoding.png"
    arguments.plots.mkdir(parents=True, exist_ok=True)
    plot_decoding(seconds, again, figure, f"Cost of one more token, small model, batch 1, up to {LONG} tokens")
    print(f"\nsaved {figure}")
    if arguments.json:
        print(json.dumps({"threads": threads, "rows": rows, "again": again}))
    return 0
