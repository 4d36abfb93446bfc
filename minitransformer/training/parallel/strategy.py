"""How each batch of a training is shared: put together here, once, from the parts in the files beside this one.

    watched( processes( micro batches( parts of one length( threads( forward and backward )))))

Each of them is a `Gradients` that calls the next one; what a training does not need is left out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import xp
from minitransformer.config import special_ids
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.system.generators import generator_state, make_generator, restore_generator
from minitransformer.system.process import keep_freed_memory
from minitransformer.training.clipping import grad_norm
from minitransformer.training.finite import SILENT
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator
from minitransformer.training.parallel.micro_batches import ByLength, GradientAccumulation
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.parallel.sharded import ShardedAdam, gathered_state, gathering
from minitransformer.training.parallel.threads import DataParallel, default_threads
from minitransformer.training.settings import TrainingSettings
from minitransformer.training.step import Gradients, Measured, step_with
from minitransformer.training.watching.diagnostics import Diagnostics


def saved_threads(facts: dict) -> int | None:
    """The number of threads of a run that was saved with these facts, or None if they do not say it."""
    rngs, processes = facts.get("dropout_rngs"), facts.get("processes", 1)
    if not rngs or not isinstance(rngs, list) or not isinstance(processes, int) or processes < 1:
        return None
    return max(1, len(rngs) // processes)


class Strategy:
    """Shares each batch of one training among `num_threads` threads of each process of the `communicator`.

    By default there is one process, with as many threads as a resumed run had, or as the model and its batches keep
    busy (see `default_threads`). With several processes all make one, with the same arguments.
    """

    workers: DataParallel
    watch: Diagnostics
    optimizer: Adam

    def __init__(self, num_threads: int | None = None, communicator: Communicator = ONE_PROCESS) -> None:
        self.num_threads, self.communicator = num_threads, communicator

    @property
    def is_root(self) -> bool:
        """Whether this process prints, evaluates and writes."""
        return self.communicator.is_root

    def in_root(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call the function in one process, while the others wait; without NumPy's warnings, as in a step."""
        if self.is_root:
            with np.errstate(**SILENT):
                function(*arguments)
        self.communicator.wait()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process. All must call it."""
        return any(self.communicator.collect(flag))

    def compose(
        self, model: Any, loss_fn: Any, optimizer: Adam, settings: TrainingSettings, facts: dict | None = None
    ) -> Callable[..., tuple[Measured, xp.ndarray]]:
        """The step of one training, of a new run or of one that was saved with `facts`: take_step(batch, measure=...).

        It is the step of step.py, with all this around its `gradients`; `watch` is the outermost part.
        A loss that does not say how many terms it is a mean over (`num_terms`) is computed for whole batches alone:
        then this raises TypeError if a batch is to be shared, and ValueError for an optimizer that is sharded over
        other processes.
        """
        keep_freed_memory()
        if isinstance(optimizer, ShardedAdam) and optimizer.communicator is not self.communicator:
            raise ValueError("the optimizer is sharded over other processes than those of the training")
        threads = self.num_threads or (saved_threads(facts) if facts else None)
        if not threads:
            can_share = hasattr(loss_fn, "num_terms")
            threads = default_threads(getattr(model, "config", None), settings.micro_batch_size) if can_share else 1
        self.num_threads = self.communicator.collect(threads)[0]
        rank, alone = self.communicator.rank, optimizer.parameters if settings.deterministic else ()
        self.seed = [settings.seed, 2]
        self.workers = DataParallel(model, loss_fn, self.num_threads, self.seed, rank, settings.recompute)
        optimizer.team = self.workers.team
        gradients: Gradients = self.workers if self.num_threads > 1 else self.workers.gradients[0]
        if type(loss_fn) is CrossEntropyLoss:  # to any other loss, padding may mean something
            gradients = ByLength(gradients, loss_fn, special_ids(model))
        if settings.grad_accumulation_steps > 1:
            gradients = GradientAccumulation(gradients, loss_fn, settings.grad_accumulation_steps, alone)
        self.optimizer = optimizer
        norm: Callable[..., xp.ndarray] = grad_norm
        own_part: dict[str, Any] = {}
        if self.communicator.size > 1:
            sharded, parameters = isinstance(optimizer, ShardedAdam), optimizer.parameters
            shared = ProcessParallel(
                gradients, loss_fn, self.communicator, parameters, in_order=settings.deterministic, sharded=sharded
            )
            gradients, norm = shared, shared.norm
            own_part = {"repeat": shared.own_part, "agree_on": shared.agree_on}
        self.watch = Diagnostics(gradients, self.workers, optimizer, settings.detect_anomaly, **own_part)
        step = partial(
            step_with,
            self.watch,
            optimizer,
            max_norm=settings.max_norm,
            check=self.watch.check,
            norm_of=partial(norm, team=self.workers.team),
        )
        return gathering(step, optimizer) if isinstance(optimizer, ShardedAdam) else step

    def optimizer_state(self) -> tuple[dict, dict]:
        """The optimizer's state; the root alone gets the arrays of a sharded one. All processes must call it."""
        return gathered_state(self.optimizer) if isinstance(self.optimizer, ShardedAdam) else self.optimizer.state()

    def state(self) -> dict[str, Any]:
        """What a resumed run needs, as values that JSON can hold. All processes must call it."""
        rngs = [generator_state(rng) for rng in self.workers.rngs]
        return {
            "processes": self.communicator.size,
            "dropout_rngs": [state for states in self.communicator.collect(rngs) for state in states],
        }

    def load_state(self, facts: dict, step: int) -> None:
        """Continue after `step` from what `state` returned."""
        saved, first = facts["dropout_rngs"], self.communicator.rank * self.workers.team.size
        for number, gradients in enumerate(self.workers.gradients, start=first):
            if number < len(saved):
                restore_generator(self.workers.rngs[number - first], saved[number])
            else:  # a thread that was added draws numbers that none has drawn before
                gradients.rng = make_generator([*self.seed, number, step])
