"""How much memory training needs, from the configuration alone: known before the model is made and the memory gone."""

from typing import NamedTuple

from minitransformer.functional.cross_entropy import BLOCK
from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.models.transformer import Transformer

FLOAT = 4  # bytes of a number; training is in float32
PROCESS = 10_000_000  # what NumPy's matrix product and the program's own code take when they are first used
ARRAYS_SAVED = 3  # as long as the weights, in a checkpoint: the weights, and Adam's two means


class TrainingMemory(NamedTuple):
    """Bytes, by what they are for."""

    weights: int
    gradients: int  # of each member of the team
    moments: int  # Adam's two running means
    averages: int  # copies of the weights, for their mean
    kept: int  # what forward keeps for backward
    work: int  # the largest arrays of a single layer, which come and go
    saving: int  # copies that are made to write a checkpoint

    @property
    def total(self):
        """The most that is held at one time.

        When a checkpoint is written, `kept` and `work` are free again. Averages are taken in the last steps alone, so
        that a checkpoint that holds them is rare, and not counted.
        """
        always = self.weights + self.gradients + self.moments + PROCESS
        return always + max(self.averages + self.kept + self.work, self.saving)


def training_memory(config, rows, lengths, kind=Transformer, members=1, averages=0):
    """What training a model of `config` takes at its peak -> TrainingMemory.

    `rows` sequences are computed at one time, by all `members` of a team together, and `lengths` are those of source
    and target, or of the one sequence that a GPT or BERT reads. `averages` copies of the weights are taken on the way.
    Compared with the peaks of processes that train (tests/models/test_memory.py) it is within a fifth.
    """
    one_copy = FLOAT * count_parameters(config, kind)
    source, target = lengths[0], lengths[-1]
    kept = sum(row.bytes * row.count for row in kept_activations(config, rows, source, target, kind))
    return TrainingMemory(
        weights=one_copy,
        gradients=members * one_copy,
        moments=2 * one_copy,
        averages=averages * one_copy,
        kept=kept,
        work=_work(config, rows, max(lengths)),
        saving=one_copy * (1 + 2 * ARRAYS_SAVED),  # the weights, then the bytes of every array, then all in one piece
    )


def _work(config, rows, length):
    """One layer's temporaries: two arrays as large as its largest one inside, and six of its input's size.

    Its largest is the feed-forward network's inner activation or the attention weights; dropout on these takes a third
    one. A block of logits, on which the loss works, is larger only in very small models.
    """
    N = rows * length
    attention = config.num_heads * length * (1.5 if config.attention_dropout else 1)
    layer = N * (2 * max(config.d_ff, attention) + 6 * config.d_model)
    return FLOAT * int(max(layer, min(BLOCK, N * config.vocab_size)))
