"""Models and batches of four sizes, and one training step of each, ours and the same in PyTorch eager."""

import dataclasses
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.measuring.tracing import Trace
from minitransformer import (
    Adam,
    Batch,
    CrossEntropyLoss,
    Layer,
    Parameter,
    Transformer,
    TransformerConfig,
    get_task,
    named_config,
)
from minitransformer.data import ToyTask
from minitransformer.layers.before_2017 import recurrent
from minitransformer.recipes import get_recipe
from minitransformer.system.generators import make_generator
from minitransformer.system.process import ThreadTeam, keep_freed_memory
from minitransformer.training import History, step_with
from minitransformer.training.parallel.parts import gradients_of
from minitransformer.training.parallel.threads import DataParallel, default_team_size, split_batch, useful_threads
from minitransformer.training.watching.diagnostics import Diagnostics
from minitransformer.vocabulary import PAD

Factors = list[tuple[np.ndarray, np.ndarray]]
LR, BETAS, EPS = 1e-4, (0.9, 0.98), 1e-9  # of Adam, as in paper section 5.3
MAX_NORM = 1.0  # gradients are clipped to this norm
LABEL_SMOOTHING = 0.1  # epsilon_ls of the paper
RECURRENT = (128, 2, 64, 32)  # width, layers, sequences and tokens of LSTM and GRU layers


class Size(NamedTuple):
    """A model and a batch; source and target have the same length."""

    name: str
    vocab_size: int
    d_model: int
    num_heads: int
    d_ff: int
    num_layers: int
    batch: int
    length: int

    def config(self, dropout: float) -> TransformerConfig:
        """The model's configuration, with dropout in the paper's places."""
        sizes = {key: getattr(self, key) for key in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers")}
        return TransformerConfig(**sizes, dropout=dropout, max_len=self.length)

    def make_batch(self, seed: int = 0) -> Batch:
        """Random tokens; in a quarter of the sequences, the last quarter is padding."""
        shape = (self.batch, self.length)
        arrays = [np.random.default_rng([seed, i]).integers(3, self.vocab_size, shape) for i in range(3)]
        for ids in arrays:
            ids[: self.batch // 4, self.length - self.length // 4 :] = PAD
        return Batch(*arrays)

    @property
    def tokens(self) -> int:
        """Source and target tokens in a batch, including padding, which costs the same."""
        return 2 * self.batch * self.length


SIZES = {
    size.name: size
    for size in (
        Size("tiny", 16, 64, 4, 256, 2, batch=64, length=12),
        Size("small", 1000, 128, 4, 512, 2, batch=64, length=32),
        Size("medium", 8000, 256, 8, 1024, 3, batch=32, length=64),
        Size("base-like", 8000, 512, 8, 2048, 6, batch=8, length=64),
    )
}


def make_training_step(
    model: Layer, label_smoothing: float = LABEL_SMOOTHING, threads: int | None = None
) -> Callable[[Any, float], Any]:
    """Return a function (batch, learning rate) -> loss: forward, loss, backward, clipping and Adam for `model`.

    `threads` is the number of threads that share a batch, by default as many as NumPy's matrix product uses.
    """
    workers = DataParallel(model, CrossEntropyLoss(label_smoothing), threads)
    optimizer = Adam(model.parameters())
    optimizer.team, diagnostics = workers.team, Diagnostics(workers, workers, optimizer)

    def step(batch: Any, lr: float) -> Any:
        optimizer.lr = lr
        return step_with(diagnostics, optimizer, batch, MAX_NORM, check=diagnostics.check)[0].loss

    return step


def train_toy_task(
    name: str, seed: int = 0, steps: int | None = None, **config: Any
) -> tuple[Transformer, ToyTask, History]:
    """Train the tiny model on a toy task with its recipe -> the model, its task and its history.

    `steps` replaces those of the recipe, with 0.3 times the paper's rate and no cooldown. `config` replaces fields of
    the configuration; there is no dropout.
    """
    task, recipe = get_task(name), get_recipe(name)
    model = Transformer(named_config("tiny", len(task.vocabulary), dropout=0.0, **config), seed=seed)
    changes: dict[str, Any] = {"steps": steps, "factor": 0.3, "cooldown": 0.0} if steps else {}
    options = dataclasses.replace(recipe.defaults, seed=seed, **changes)
    return model, task, recipe.train(options, model, task)


def numpy_step(size: Size, dropout: float) -> Callable[[], Any]:
    """Our step on one batch of `size`, on the device in use -> a function without arguments that returns the loss."""
    keep_freed_memory()
    step, batch = make_training_step(Transformer(size.config(dropout))), size.make_batch()
    return lambda: step(batch, LR)


def products_alone(size: Size, dropout: float) -> Callable[[], Any]:
    """The matrix products of our step in their own shapes, and nothing else -> a function without arguments."""
    model = Transformer(size.config(dropout))
    gradients = gradients_of(model, CrossEntropyLoss(LABEL_SMOOTHING), make_generator(0))
    threads = useful_threads(default_team_size(), size.batch, 2 * size.length, size.d_model)
    parts = split_batch(size.make_batch(), threads)
    return multiply(*(products_of(model, partial(gradients, part)) for part in parts))


def products_of(layer: Layer, step: Callable[[], Any]) -> Factors:
    """Take a step of `layer` -> the two factors of each matrix product in it that is no sum."""
    trace = Trace(products_only=True)
    with trace.recording(layer):
        step()
    return trace.products


def multiply(*products: Factors) -> Callable[[], Any]:
    """A function that computes these products and nothing else, those of each argument in a thread of its own."""
    team = ThreadTeam(len(products))

    def compute(factors: Factors) -> None:
        for a, b in factors:
            a @ b

    return lambda: team.map(compute, products)


def adam_steps(threads: int, with_torch: bool, count: int = 48_000_000) -> dict[str, Callable[[], Any]]:
    """Adam alone on one vector of `count` parameters, ours and PyTorch's -> {"numpy": function, "pytorch": ...}."""
    rng = np.random.default_rng(0)
    parameter = Parameter(rng.standard_normal(count, dtype=np.float32))
    parameter.grad[...] = rng.standard_normal(count, dtype=np.float32)
    optimizer = Adam([parameter], lr=LR)
    optimizer.team = ThreadTeam(threads)
    calls: dict[str, Callable[[], Any]] = {"numpy": optimizer.step}
    if with_torch:
        import torch

        torch.set_num_threads(threads)
        theirs = torch.nn.Parameter(torch.from_numpy(parameter.data.copy()))
        theirs.grad = torch.from_numpy(parameter.grad.copy())
        calls["pytorch"] = torch.optim.Adam([theirs], lr=LR, betas=BETAS, eps=EPS).step
    return calls


def recurrent_steps(kind: str, with_torch: bool) -> dict[str, Callable[[], Any]]:
    """Time forward and backward of our LSTM or GRU layers, of PyTorch's, and of our matrix products, on one thread."""
    width, layers, *shape = RECURRENT
    rng = np.random.default_rng(1)
    layer = getattr(recurrent, kind)(width, width, num_layers=layers, rng=np.random.default_rng(0))
    x, dy = (rng.standard_normal((*shape, width)).astype(np.float32) for _ in range(2))

    def step() -> None:
        layer.zero_grad()
        _, cache = layer.forward(x)
        layer.backward(dy, cache)

    calls = {"numpy": step, "products": multiply(products_of(layer, step))}
    if with_torch:
        import torch

        torch.set_num_threads(1)
        theirs = getattr(torch.nn, kind)(width, width, layers, batch_first=True)
        given, upstream = torch.from_numpy(x).requires_grad_(), torch.from_numpy(dy)

        def pytorch() -> None:
            theirs.zero_grad()
            given.grad = None
            theirs(given)[0].backward(upstream)

        calls["pytorch"] = pytorch
    return calls


def need(experiment: str, **packages: str) -> None:
    """Raise ValueError unless all of `packages` {name: the extra that brings it} are installed."""
    for package, extra in packages.items():
        if importlib.util.find_spec(package) is None:
            raise ValueError(f"{experiment} needs {package}, which is not installed: pip install -e '.[{extra}]'")


def torch_is_installed() -> bool:
    """Whether PyTorch is installed, without importing it."""
    return importlib.util.find_spec("torch") is not None


def pytorch_step(
    size: Size, dropout: float, threads: int, device: str = "cpu", compiled: bool = False
) -> Callable[[], Any]:
    """The same step in PyTorch eager, or `compiled`, on `device` -> a function without arguments, returns the loss."""
    import torch

    from experiments.measuring.pytorch_model import PyTorchTransformer

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model: Any = PyTorchTransformer(size.config(dropout)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=BETAS, eps=EPS)
    if compiled:
        model = torch.compile(model)
    arrays = [torch.from_numpy(ids).to(device) for ids in size.make_batch()]
    return partial(step_in_pytorch, model, optimizer, *arrays)


def step_in_pytorch(model: Any, optimizer: Any, *arrays: Any, label_smoothing: float = LABEL_SMOOTHING) -> Any:
    """Forward, loss, backward, clipping and Adam in PyTorch, for the inputs and targets in `arrays` -> the loss."""
    import torch

    *inputs, targets = arrays
    optimizer.zero_grad()
    how: dict[str, Any] = {"ignore_index": PAD, "label_smoothing": label_smoothing}
    loss = torch.nn.functional.cross_entropy(model(*inputs).flatten(0, 1), targets.flatten(), **how)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    return loss.detach()
