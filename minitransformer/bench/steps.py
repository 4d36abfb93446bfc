"""One training step as a function to be timed: ours, and the same in PyTorch eager."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from minitransformer.bench.sizes import Size
from minitransformer.bench.training import LABEL_SMOOTHING, MAX_NORM, make_training_step
from minitransformer.core import Parameter
from minitransformer.models import Transformer
from minitransformer.system.process import ThreadTeam, keep_freed_memory
from minitransformer.training import Adam

LR = 1e-4


def numpy_step(size: Size, dropout: float) -> Callable[[], Any]:
    """Our step on one batch of `size`, on the device in use -> a function without arguments that returns the loss."""
    keep_freed_memory()
    step, batch = make_training_step(Transformer(size.config(dropout))), size.make_batch()
    return lambda: step(batch, LR)


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
        calls["pytorch"] = torch.optim.Adam([theirs], lr=LR, betas=(0.9, 0.98), eps=1e-9).step
    return calls


def torch_is_installed() -> bool:
    """Whether PyTorch is installed, without importing it."""
    return importlib.util.find_spec("torch") is not None


def pytorch_step(size: Size, dropout: float, threads: int, device: str = "cpu") -> Callable[[], Any]:
    """The same step in PyTorch eager on `device` -> a function without arguments that returns the loss."""
    import torch

    from minitransformer.bench.pytorch_model import PyTorchTransformer

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = PyTorchTransformer(size.config(dropout)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.98), eps=1e-9)
    source, target_in, target_out = (torch.from_numpy(ids).to(device) for ids in size.make_batch())

    def step() -> Any:
        optimizer.zero_grad()
        logits = model(source, target_in)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=LABEL_SMOOTHING
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        return loss.detach()

    return step
