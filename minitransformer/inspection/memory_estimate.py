"""The memory estimate: how much memory training needs, from the configuration alone, before the model is made."""

from collections.abc import Sequence
from typing import NamedTuple

from minitransformer.config import TransformerConfig
from minitransformer.core import Layer
from minitransformer.functional.reductions import BLOCK
from minitransformer.inspection.activation_memory import count_parameters, kept_activations
from minitransformer.layers.since_2017.attention_kinds import in_tiles
from minitransformer.layers.since_2017.blockwise import most_logits
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.models.transformer import Transformer

FLOAT = 4  # bytes of a number; training is in float32
PROCESS = 7_000_000  # bytes that NumPy's matrix product and the program's own code need when they are first used
ARRAYS_SAVED = 3  # arrays of the size of the weights in a checkpoint: the weights, and Adam's two means


class TrainingMemory(NamedTuple):
    """Bytes by purpose."""

    weights: int
    gradients: int  # of every thread's replica
    moments: int  # Adam's two running means, or this process's shard of them
    averages: int  # copies of the weights, for their mean
    kept: int  # activation memory: what forward keeps for backward
    work: int  # the largest temporary arrays of a single layer, or of the loss
    saving: int  # copies made to write a checkpoint

    @property
    def total(self) -> int:
        """The peak in bytes.

        When a checkpoint is written, `kept` and `work` are free again. Averages are taken only in the last steps, so a
        checkpoint that holds them is rare and does not count.
        """
        always = self.weights + self.gradients + self.moments + PROCESS
        return always + max(self.averages + self.kept + self.work, self.saving)


def training_memory(
    config: TransformerConfig,
    rows: int,
    lengths: Sequence[int],
    kind: type[Layer] = Transformer,
    num_threads: int = 1,
    averages: int = 0,
    shards: int = 1,
    recompute: bool = False,
) -> TrainingMemory:
    """The peak memory of training a model for `config` -> TrainingMemory.

    `num_threads` threads, each with a replica of the model, together compute `rows` sequences at one time. `lengths`
    are those of source and target, or of the one sequence that a GPT or BERT reads. `averages` copies of the weights
    are kept for their mean. Adam's running means are spread over `shards` processes. With
    `recompute` only inputs of layers are kept, and the caches of one layer at a time are part of the work.
    tests/inspection/test_memory_estimate.py checks that the estimate is within a fifth of the peak of a training
    process.
    """
    all_weights = config.attention == "full" and not (kind is GPT and in_tiles(lengths[-1]))
    one_copy = FLOAT * count_parameters(config, kind)
    source, target = lengths[0], lengths[-1]
    kept = kept_activations(config, rows, source, target, kind)
    again = _largest_layer(kept) if recompute else 0
    kept = kept_activations(config, rows, source, target, kind, recompute=True) if recompute else kept
    return TrainingMemory(
        weights=one_copy,
        gradients=num_threads * one_copy,
        moments=2 * one_copy // shards,
        averages=averages * one_copy,
        kept=_bytes(kept),
        work=_work(config, rows, max(lengths), num_threads, again, all_weights),
        saving=one_copy * (1 + 2 * ARRAYS_SAVED),  # the weights, the bytes of every array, the whole file
    )


def _bytes(rows):
    return sum(row.bytes * row.count for row in rows)


def _largest_layer(rows):
    """The bytes that one layer keeps, of the stack in which that is most."""
    stacks: dict[str, list] = {}
    for row in rows:
        stack, _, inside = row.name.partition(".layers.")
        if inside:
            stacks.setdefault(stack, []).append(row)
    return max(_bytes(found) / max(row.count for row in found) for found in stacks.values())


def _work(config, rows, length, num_threads, again, all_weights):
    """The temporary arrays of one layer, or those of the loss if they are larger.

    A layer has two of the size of its largest inner array, and six of the size of its input. The largest inner array is
    the feed-forward network's activation or, with `all_weights` at one time, the weights of attention; dropout on these
    needs a third one. The loss has a block of logits for each thread, a copy of a part of it, what the head keeps for
    the block, and the gradient of the head's input. `again` are the bytes that a layer makes a second time, for its
    backward pass.
    """
    N, C, V = rows * length, config.d_model, config.vocab_size
    attention = config.num_heads * length * (1.5 if config.attention_dropout else 1) if all_weights else C
    layer = N * (2 * max(config.d_ff, attention) + 6 * C)
    tokens = min(N, num_threads * max(1, most_logits() // V))  # in the threads' blocks
    loss = tokens * V + min(num_threads * BLOCK, tokens * V) + 5 * tokens * C + N * C
    return int(max(FLOAT * layer + again, FLOAT * loss))
