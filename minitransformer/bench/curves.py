"""`minitransformer bench --curves`: a model learns here and in PyTorch, from the same weights and batches."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minitransformer.bench.figures import plot_curves
from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.training import LABEL_SMOOTHING, MAX_NORM, make_training_step
from minitransformer.data import TextTask, TranslationTask, load_bible, load_shakespeare
from minitransformer.data.task import TrainingBatch
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.system.process import blas_threads, keep_freed_memory
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import BytePairTokenizer, CharacterTokenizer
from minitransformer.training import cosine
from minitransformer.training.batches import Batches
from minitransformer.vocabulary import PAD

if TYPE_CHECKING:
    import torch


class Problem(NamedTuple):
    """What both libraries learn, and how. The learning rate is a cosine; there is no dropout."""

    title: str
    model: type[GPT] | type[Transformer]
    config: TransformerConfig  # without dropout, because the two would draw different masks
    data: Any  # see data/task.py
    batch_size: int
    steps: int
    warmup: int
    peak: float  # the largest learning rate
    label_smoothing: float = 0.0


def shakespeare() -> Problem:
    """A GPT of the sizes of `minitransformer train shakespeare`, on windows of 128 characters."""
    corpus, length = load_shakespeare(), 128
    task = TextTask(corpus, CharacterTokenizer.train(corpus.train + corpus.held_out), length)
    sizes = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4, "max_len": length}
    config = gpt_config(task.tokenizer.vocab_size, dropout=0.0, **sizes)
    return Problem("Shakespeare", GPT, config, task, batch_size=32, steps=300, warmup=100, peak=2e-3)


def translation() -> Problem:
    """An encoder-decoder on pairs of German and English sentences of up to 40 tokens, in batches of 1,500 tokens."""
    corpus, length = load_bible(), 40
    text = "\n".join(sentence for pair in corpus.train for sentence in pair)
    task = TranslationTask(corpus, BytePairTokenizer.train(text, 4000), length)
    sizes: dict[str, Any] = {"d_model": 160, "num_heads": 4, "d_ff": 640, "num_layers": 3, "max_len": length}
    config = TransformerConfig(task.tokenizer.vocab_size, norm="pre", dropout=0.0, **sizes)
    problem = Problem("Translation", Transformer, config, task, batch_size=1500, steps=300, warmup=100, peak=2e-3)
    return problem._replace(label_smoothing=LABEL_SMOOTHING)


# what is learned, by name, and the file of the figure
PROBLEMS: dict[str, Callable[[], Problem]] = {"shakespeare": shakespeare, "translation": translation}
FIGURES = {"shakespeare": "bench_curves.png", "translation": "bench_curves_translation.png"}


def run(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train both models on the problem `name`, of PROBLEMS -> {"numpy": losses, "pytorch": losses}, in nats.

    Prints how far the two losses are apart, and draws them into `folder`. Raises ValueError without PyTorch, or without
    the package that the text comes from.
    """
    if not torch_is_installed():
        raise ValueError("the curves compare with PyTorch, which is not installed: pip install -e '.[oracle]'")
    keep_freed_memory()
    problem = PROBLEMS[name]()
    print(f"{problem.title}, {problem.steps} steps of {problem.model.__name__}, float32, threads: {blas_threads()}")
    with tqdm(total=problem.steps, unit="step") as bar:
        losses = loss_curves(problem, seed=seed, after_step=bar.update)
    ends, apart = losses[:, -1], np.abs(losses[0] - losses[1])
    print(f"loss after {problem.steps} steps    ours {ends[0]:.4f}    PyTorch {ends[1]:.4f} nats per token")
    print(f"difference          at most {apart.max():.1e}    at step 1 {apart[0]:.1e}, median {np.median(apart):.1e}")
    figure = folder / FIGURES[name]
    plot_curves(losses, figure, f"{problem.title}: our loss and PyTorch's are at most {apart.max():.1g} nats apart")
    print(f"saved {figure}")
    return {"numpy": losses[0].tolist(), "pytorch": losses[1].tolist()}


def loss_curves(
    problem: Problem, seed: int = 0, dtype: str = "float32", after_step: Callable[[], Any] = lambda: None
) -> np.ndarray:
    """Train our model and PyTorch's, on the same batches -> losses (2, steps) in nats: ours, then PyTorch's.

    `after_step` is called after every step.
    """
    import torch

    ours = problem.model(problem.config, seed=seed, dtype=dtype)
    train_step = make_training_step(ours, problem.label_smoothing)
    theirs = pytorch_copy(ours, getattr(torch, dtype))
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = Batches(problem.data, problem.batch_size, seed)
    losses = np.empty((2, problem.steps))
    for i in range(problem.steps):
        batch, lr = batches.next(), cosine(i + 1, problem.steps, problem.peak, problem.warmup)
        losses[0, i] = float(train_step(batch, lr))
        losses[1, i] = pytorch_train_step(theirs, optimizer, batch, lr, problem.label_smoothing)
        after_step()
    return losses


def pytorch_copy(ours: GPT | Transformer, dtype: "torch.dtype") -> "torch.nn.Module":
    """The same model in PyTorch, with the weights of ours."""
    from minitransformer.bench import pytorch_gpt, pytorch_model

    if isinstance(ours, GPT):
        gpt = pytorch_gpt.PyTorchGPT(ours.config).to(dtype)
        pytorch_gpt.load_ours(gpt, ours)
        return gpt
    transformer = pytorch_model.PyTorchTransformer(ours.config, dtype)
    pytorch_model.load_ours(transformer, ours)
    return transformer


def pytorch_train_step(
    model: "torch.nn.Module",
    optimizer: "torch.optim.Optimizer",
    batch: TrainingBatch,
    lr: float,
    label_smoothing: float,
) -> float:
    """Forward, loss, backward, clipping and Adam in PyTorch -> the loss."""
    import torch

    *inputs, targets = (torch.from_numpy(np.ascontiguousarray(ids)) for ids in (*batch.inputs, batch.targets))
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(
        model(*inputs).flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=label_smoothing
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    return loss.item()
