"""Bugs of an optimizer whose running means are spread over processes. Each of them trains, and most learn something."""

from minitransformer import training
from minitransformer.exercises.planting import Exhibit
from minitransformer.training.parallel.communicator import Communicator
from minitransformer.training.parallel.sharded import ShardedAdam

EXHIBITS = (
    Exhibit(
        "the norm is taken over all shards, though only the own one was added up",
        "Published (llm.c). The other shards still hold what this process alone has computed.",
        ShardedAdam.grad_norm,
        "[self.flat.grad[self.shard]]",
        "[self.flat.grad]",
    ),
    Exhibit(
        "each process clips by the norm of its own shard",
        "Published. Every shard gets a factor of its own, so the direction of the step changes.",
        ShardedAdam.grad_norm,
        "self.communicator.collect(own)",
        "[own]",
    ),
    Exhibit(
        "the norms of the shards are added up, instead of their squares",
        "The root of a sum is not the sum of the roots. The norm comes out too large, and every step too small.",
        ShardedAdam.grad_norm,
        "[square for shard in self.communicator.collect(own) for square in shard]",
        "[sum(sum(shard) ** 0.5 for shard in self.communicator.collect(own)) ** 2]",
    ),
    Exhibit(
        "the weights of the other shards are never gathered",
        "Each process goes on with the first weights of all other shards, and the processes drift apart.",
        ShardedAdam.step,
        "self.communicator.all_gather(self.weights)",
        "pass",
    ),
    Exhibit(
        "the shards are gathered before the update",
        "Each process computes its gradient with weights that are a step old, except for its own shard.",
        ShardedAdam.step,
        "super().step(scale=scale)\n    self.communicator.all_gather(self.weights)",
        "self.communicator.all_gather(self.weights)\n    super(ShardedAdam, self).step(scale=scale)",
    ),
    Exhibit(
        "a checkpoint holds the running means of one process alone",
        "Published. The root saves what it has, and the shards of all others start again from its numbers.",
        ShardedAdam.state,
        """{"adam.m": self.communicator.gather(self.m), "adam.v": self.communicator.gather(self.v)}""",
        """{
        name: xp.resize(array, self.weights.size) if self.communicator.is_root else None
        for name, array in (("adam.m", self.m), ("adam.v", self.v))
    }""",
    ),
    Exhibit(
        "every process resumes with the running means of the first shard",
        "The length fits, and the numbers belong to other weights.",
        training.Adam.load_state,
        "arrays[name][self.shard]",
        "arrays[name][: len(array)]",
    ),
    Exhibit(
        "a matrix that two shards share decays in neither of them",
        "Whoever asks whether a matrix lies inside the shard forgets those that lie across its border.",
        training.Adam._decay,
        "if parameter.data.ndim > 1:",
        "if parameter.data.ndim > 1 and shard.start <= start and end <= shard.stop:",
    ),
    Exhibit(
        "the shards have equal numbers of weights, and the last weights belong to none",
        "A division without a remainder, until there is one.",
        Communicator.shards,
        "-(-length // clipping.BLOCK)",
        "length // clipping.BLOCK",
    ),
)
