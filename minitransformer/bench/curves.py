"""The loss of one decoder-only model in training, ours and PyTorch's, from the same weights on the same batches."""

from functools import partial

import numpy as np

from minitransformer.models import GPT, gpt_config
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, TrainingSettings, cosine, training_step


def loss_curves(task, settings=None, dtype="float32", show=lambda: None, peak=1e-3, warmup=50, **sizes):
    """Train both for `settings.steps` steps -> two arrays of losses in nats: ours, PyTorch's.

    `task` is a TextTask, `sizes` are fields of the configuration. Without dropout, as the two draw other masks. `show`
    is called after every step.
    """
    import torch

    from minitransformer.bench.pytorch_gpt import PyTorchGPT, load_ours

    settings = settings or TrainingSettings(steps=200, batch_size=16)
    schedule = partial(cosine, steps=settings.steps, peak=peak, warmup=warmup)
    config = gpt_config(task.tokenizer.vocab_size, dropout=0.0, **sizes)
    ours = GPT(config, seed=settings.seed, dtype=dtype)
    our_optimizer, workers = Adam(ours.parameters()), DataParallel(ours, CrossEntropyLoss())
    our_optimizer.team = workers.team
    model = PyTorchGPT(config).to(getattr(torch, dtype))
    load_ours(model, ours)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    rng = np.random.default_rng([settings.seed, 1])
    losses = np.empty((2, settings.steps))
    for step in range(1, settings.steps + 1):
        batch, our_optimizer.lr = task.batch(rng, settings.batch_size), schedule(step)
        losses[0, step - 1] = float(training_step(batch, our_optimizer, workers, settings.max_norm)[0])
        losses[1, step - 1] = pytorch_train_step(model, optimizer, batch, our_optimizer.lr, settings.max_norm)
        show()
    return losses


def pytorch_train_step(model, optimizer, batch, lr, max_norm):
    """Forward, loss, backward, clip, Adam -> the loss."""
    import torch

    ids, targets = (torch.from_numpy(np.ascontiguousarray(array)) for array in (batch.ids, batch.targets))
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=0)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
