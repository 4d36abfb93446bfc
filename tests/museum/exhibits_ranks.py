"""Bugs of tensor parallelism: what is summed over the ranks, what is cut where, and what the ranks must agree on."""

from minitransformer.exercises.planting import Exhibit
from minitransformer.functional import ranks
from minitransformer.layers import shards, tensor_parallel
from minitransformer.system import generators

EXHIBITS = (
    Exhibit(
        "every rank adds the output's bias",
        "The bias belongs to the sum, not to each of its terms: with N ranks it would be added N times.",
        tensor_parallel.RowLinear.forward,
        "y += self.b.data",
        "y += self.ranks.size * self.b.data",
    ),
    Exhibit(
        "the sum of the ranks' terms is summed again in backward",
        "All ranks compute the same loss. Whoever adds up their gradients counts it once for each rank.",
        ranks.sum_over_ranks_backward,
        "return dy",
        "return _sum(dy, ranks)",
    ),
    Exhibit(
        "each rank keeps the input's gradient of its own columns",
        "x goes into the columns of every rank, so its gradient is the sum over the ranks. The layer's own weights get "
        "the right gradient all the same; those before it do not.",
        ranks.copy_to_ranks_backward,
        "return _sum(dy, ranks)",
        "return dy",
    ),
    Exhibit(
        "the sum over the ranks overwrites its argument",
        "The gradient that one layer sums up is still needed by another.",
        ranks._sum,
        "x.copy()",
        "x",
    ),
    Exhibit(
        "the ranks cut W^Q | W^K | W^V as one block",
        "The first of two ranks would take all queries and half of the keys.",
        shards.split,
        "firsts = ",
        "cut = cut._replace(widths=(sum(cut.widths),))\n    firsts = ",
    ),
    Exhibit(
        "joined shards lie one after the other, whatever the blocks",
        "W^Q of rank 0, W^K of rank 0, ..., W^Q of rank 1: every shape is right.",
        shards.join,
        "for of_one_block in zip(*pieces, strict=True) for piece in of_one_block",
        "for of_one_rank in pieces for piece in of_one_rank",
    ),
    Exhibit(
        "all ranks draw the same dropout inside their shards",
        "Feature 0 of rank 0 and feature 0 of rank 1 are always dropped together.",
        generators.generator_of_rank,
        "tolist(), rank]",
        "tolist(), 0]",
    ),
    Exhibit(
        "the ranks draw different dropout after the sum",
        "What all ranks have copies of must stay equal: one rank that draws more has other masks from there on.",
        generators.generator_of_rank,
        "random_uint16(rng, (4,))",
        "random_uint16(rng, (4 + 4 * rank,))",
    ),
    Exhibit(
        "every rank reads the mask of the first heads",
        "The heads of rank 1 are not heads 0, 1, ... of the mask.",
        tensor_parallel.ShardedAttention.__init__,
        "slice(first * per_group, end * per_group)",
        "slice(0, heads)",
    ),
)
