"""The settings of a training run: numbers of steps, sequences and micro batches."""

import dataclasses

from minitransformer.checks import check_integer, check_number


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """The numbers of a training run. Raises ValueError or TypeError, naming the field, for bad values.

    The loss, the optimizer with its learning rate, and the averaging are arguments of `train` of their own.

    Fields:
        steps: number of optimizer steps.
        batch_size: sequences, or pairs of them, in a step.
        max_norm: the gradient is clipped to this norm.
        seed: of the batches and of dropout.
        grad_accumulation_steps: micro batches of a batch, computed one after another to save memory.
        eval_interval: steps between two calls of the evaluation callback.
        detect_anomaly: check every layer in every step, to name the first that is not finite. Slow.
        recompute: keep the input of each layer instead of its cache, and compute forward again in the backward pass
            (see `Recomputed`). Less memory, more time, the same bits.
        deterministic: add up the gradients of processes and of micro batches in their order, each computed alone. N
            processes then give the same bits as one with N micro batches, without dropout.
    """

    steps: int = 1000
    batch_size: int = 64
    max_norm: float = 1.0
    seed: int = 0
    grad_accumulation_steps: int = 1
    eval_interval: int = 1
    detect_anomaly: bool = False
    recompute: bool = False
    deterministic: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "grad_accumulation_steps", "eval_interval"):
            check_integer(name, getattr(self, name), least=1)
        check_integer("seed", self.seed, least=0)
        if not check_number("max_norm", self.max_norm) > 0:
            raise ValueError(f"max_norm must be greater than 0, got {self.max_norm}")
        if self.grad_accumulation_steps > self.batch_size:
            raise ValueError(
                f"grad_accumulation_steps must be from 1 to batch_size = {self.batch_size}, "
                f"got {self.grad_accumulation_steps}"
            )

    @property
    def micro_batch_size(self) -> int:
        """The largest number of sequences that are computed at one time."""
        return -(-self.batch_size // self.grad_accumulation_steps)
