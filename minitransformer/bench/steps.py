"""One training step, as a function to be timed: ours, and the same in PyTorch eager."""

import importlib.util

import numpy as np

from minitransformer.core import Parameter
from minitransformer.models import Transformer
from minitransformer.process import Team, keep_freed_memory
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, Diagnostics, training_step

LR, MAX_NORM = 1e-4, 1.0


def numpy_step(size, dropout):
    """Our step on one batch of `size` -> a function without arguments that returns the loss, on the device in use."""
    keep_freed_memory()
    config = size.config(dropout)
    model, batch = Transformer(config), size.make_batch()
    optimizer, workers = Adam(model.parameters(), lr=LR), DataParallel(model, CrossEntropyLoss(config.label_smoothing))
    optimizer.team = workers.team
    diagnostics = Diagnostics(workers)

    def step():
        return training_step(batch, optimizer, workers, MAX_NORM, diagnostics)[0]

    return step


def adam_steps(threads, with_torch, count=48_000_000):
    """Adam alone on one vector of `count` parameters, ours and PyTorch's -> {name: function}."""
    rng = np.random.default_rng(0)
    parameter = Parameter(rng.standard_normal(count, dtype=np.float32))
    parameter.grad[...] = rng.standard_normal(count, dtype=np.float32)
    optimizer = Adam([parameter], lr=LR)
    optimizer.team = Team(threads)
    calls = {"numpy": optimizer.step}
    if with_torch:
        import torch

        torch.set_num_threads(threads)
        theirs = torch.nn.Parameter(torch.from_numpy(parameter.data.copy()))
        theirs.grad = torch.from_numpy(parameter.grad.copy())
        calls["pytorch"] = torch.optim.Adam([theirs], lr=LR, betas=(0.9, 0.98), eps=1e-9).step
    return calls


def torch_is_installed():
    """Whether PyTorch can be compared with."""
    return importlib.util.find_spec("torch") is not None


def pytorch_step(size, dropout, threads, device="cpu"):
    """The same step in PyTorch eager -> a function without arguments that returns the loss, on `device`."""
    import torch

    from minitransformer.bench.pytorch_model import PyTorchTransformer

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = size.config(dropout)
    model = PyTorchTransformer(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.98), eps=1e-9)
    source, target_in, target_out = (torch.from_numpy(ids).to(device) for ids in size.make_batch())

    def step():
        optimizer.zero_grad()
        logits = model(source, target_in)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=config.label_smoothing
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        return loss.detach()

    return step
