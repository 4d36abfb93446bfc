"""`minitransformer bench --curves`: a GPT learns Shakespeare here and in PyTorch, from the same weights and batches."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minitransformer.bench.figures import plot_curves
from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.training import MAX_NORM, make_training_step
from minitransformer.data import TextBatch, TextTask, load_shakespeare
from minitransformer.models import GPT, TransformerConfig, gpt_config
from minitransformer.process import blas_threads, keep_freed_memory
from minitransformer.progress import tqdm
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import cosine

if TYPE_CHECKING:
    import torch

# as `minitransformer train shakespeare`
SIZES = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4}
LENGTH = 128  # characters in a window
STEPS, BATCH_SIZE, WARMUP, PEAK = 300, 32, 100, 2e-3


def run(seed: int, folder: Path) -> dict[str, Any]:
    """Train both models -> {"numpy": losses, "pytorch": losses}, in nats.

    Prints how far the two losses are apart, and draws them as bench_curves.png into `folder`. Raises ValueError without
    PyTorch.
    """
    if not torch_is_installed():
        raise ValueError(
            "the curves compare with PyTorch, which is not installed: pip install 'minitransformer[oracle]'"
        )
    keep_freed_memory()
    corpus = load_shakespeare()
    task = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), LENGTH)
    config = gpt_config(task.tokenizer.vocab_size, dropout=0.0, max_len=LENGTH, **SIZES)
    print(f"GPT on Shakespeare, {STEPS} steps of {BATCH_SIZE} windows, float32, threads: {blas_threads()}")
    with tqdm(total=STEPS, unit="step") as bar:
        losses = loss_curves(
            task, config, STEPS, BATCH_SIZE, warmup=WARMUP, peak=PEAK, seed=seed, after_step=bar.update
        )
    apart = np.abs(losses[0] - losses[1])
    print(f"loss after {STEPS} steps    ours {losses[0, -1]:.4f}    PyTorch {losses[1, -1]:.4f} nats per character")
    print(f"difference          at most {apart.max():.1e}    at step 1 {apart[0]:.1e}, median {np.median(apart):.1e}")
    figure = folder / "bench_curves.png"
    plot_curves(losses, figure, f"Shakespeare: our loss and PyTorch's are at most {apart.max():.1g} nats apart")
    print(f"saved {figure}")
    return {"numpy": losses[0].tolist(), "pytorch": losses[1].tolist()}


def loss_curves(
    task: TextTask,
    config: TransformerConfig,
    steps: int,
    batch_size: int,
    *,
    warmup: int,
    peak: float,
    seed: int = 0,
    dtype: str = "float32",
    after_step: Callable[[], Any] = lambda: None,
) -> np.ndarray:
    """Train our GPT and PyTorch's, on the same batches -> losses (2, steps) in nats: ours, then PyTorch's.

    The learning rate is a cosine with `warmup` and `peak`. `config` must not have dropout, because the two would draw
    different masks. `after_step` is called after every step.
    """
    import torch

    from minitransformer.bench.pytorch_gpt import PyTorchGPT, load_ours

    ours = GPT(config, seed=seed, dtype=dtype)
    train_step = make_training_step(ours, label_smoothing=0.0)
    theirs = PyTorchGPT(config).to(getattr(torch, dtype))
    load_ours(theirs, ours)
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    rng = np.random.default_rng([seed, 1])
    losses = np.empty((2, steps))
    for i in range(steps):
        batch, lr = task.batch(rng, batch_size), cosine(i + 1, steps, peak, warmup)
        losses[:, i] = float(train_step(batch, lr)), pytorch_train_step(theirs, optimizer, batch, lr)
        after_step()
    return losses


def pytorch_train_step(
    model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", batch: TextBatch, lr: float
) -> float:
    """Forward, loss, backward, clipping and Adam in PyTorch -> the loss."""
    import torch

    ids, targets = (torch.from_numpy(np.ascontiguousarray(array)) for array in (batch.ids, batch.targets))
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=0)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    return loss.item()
