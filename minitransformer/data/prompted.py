"""A toy task as one sequence, for a decoder-only model: the source is the prompt, and the answer follows it."""

import numpy as np

from minitransformer.data.tasks import Batch, ToyTask, pad_rows
from minitransformer.data.text import TextBatch
from minitransformer.vocabulary import PAD


class PromptedTask:
    """The pairs of a ToyTask as "source eos answer eos". Only the answer's tokens count in the loss."""

    def __init__(self, task: ToyTask):
        self.task = task

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` training pairs, padded at the end."""
        return prompted(self.task.batch(rng, size))


def prompted(batch: Batch) -> TextBatch:
    """The pairs of a batch, each as one sequence."""
    rows, answers = [], []
    for source, target in zip(batch.source, batch.target_out, strict=True):
        source, target = source[source != PAD], target[target != PAD]
        rows.append(np.concatenate([source, target[:-1]]))
        answers.append(np.concatenate([np.full(len(source) - 1, PAD), target]))
    length = max(map(len, rows))
    return TextBatch(pad_rows(rows, length), pad_rows(answers, length))
