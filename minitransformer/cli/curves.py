"""`minitransformer bench --curves`: the same GPT learns Shakespeare here and in PyTorch, and both losses are drawn."""

import json

import numpy as np

from minitransformer.bench.curves import loss_curves
from minitransformer.bench.steps import torch_is_installed
from minitransformer.data import TextTask, load_shakespeare
from minitransformer.process import keep_freed_memory, num_threads
from minitransformer.progress import tqdm
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import TrainingSettings

LENGTH = 128  # characters in a window, as `train shakespeare` has
STEPS = 300
SIZES = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4}  # as `train shakespeare` has


def run_curves(arguments):
    """Train both from the same weights on the same batches, print how far they part, draw both."""
    from minitransformer.plotting import plot_curves

    if not torch_is_installed():
        raise ValueError(
            "the curves compare with PyTorch, which is not installed: pip install 'minitransformer[oracle]'"
        )
    keep_freed_memory()
    corpus = load_shakespeare()
    task = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    settings = TrainingSettings(steps=STEPS, batch_size=32, seed=arguments.seed)
    print(f"GPT on Shakespeare, {STEPS} steps of {settings.batch_size} windows, float32, {num_threads()} threads")
    with tqdm(total=STEPS, disable=None, unit="step") as bar:
        losses = loss_curves(task, settings, "float32", max_len=LENGTH, show=bar.update, peak=2e-3, warmup=100, **SIZES)
    apart = np.abs(losses[0] - losses[1])
    print(f"loss after {STEPS} steps    ours {losses[0, -1]:.4f}    PyTorch {losses[1, -1]:.4f} nats per character")
    print(f"apart               at most {apart.max():.1e}    at step 1 {apart[0]:.1e}, median {np.median(apart):.1e}")
    figure = arguments.plots / "bench_curves.png"
    plot_curves(losses, figure, f"Shakespeare: our loss and PyTorch's are at most {apart.max():.1g} nats apart")
    print(f"saved {figure}")
    if arguments.json:
        print(json.dumps({"numpy": losses[0].tolist(), "pytorch": losses[1].tolist()}))
    return 0
