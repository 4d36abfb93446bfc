"""Published bugs around the model: parameters, optimizers, the step, the loop, threads and processes."""

from tests.museum import NUMPY
from tests.museum.planting import Exhibit

EXHIBITS = (
    Exhibit(
        "a resumed run begins its epoch again",
        "The first batches are seen once more, and a run that stops in each epoch never sees the last ones.",
        {"training.batches:Batches.load_state": ('check_integer("position", facts["position"], least=0)', "0")},
        "paiml/entrenar #294",
    ),
    Exhibit(
        "a resumed run skips batches of another order",
        "The generator has gone on since the epoch was shuffled: some pairs come twice, others not at all.",
        {"training.batches:Batches.state": ("'data_rng': self._start", "'data_rng': generator_state(self.rng)")},
        "huggingface/accelerate #2016",
    ),
    Exhibit(
        "the processes' gradients are averaged though their numbers of tokens differ",
        "A mean of means counts a token of a short part for more.",
        {
            "training.parallel.processes:ProcessParallel.own_part": (
                "shares_of([self.num_terms(part.targets) for part in parts])",
                "[1 / len(parts)] * len(parts)",
            )
        },
        "PrimeIntellect-ai/prime-rl #1957",
    ),
    Exhibit(
        "the norm is taken over all shards, though only the own one was added up",
        "The other shards still hold what this process alone has computed.",
        {"training.parallel.processes:ProcessParallel.norm": ("[flat.grad[shard]]", "[flat.grad]")},
        "karpathy/llm.c #524",
    ),
    Exhibit(
        "each process clips by the norm of its own shard",
        "Every shard gets a factor of its own, so the direction of the step changes.",
        {"training.parallel.processes:ProcessParallel.norm": ("self.communicator.collect(own)", "[own]")},
        "pytorch/xla #4796",
    ),
    Exhibit(
        "parameters of layers in a list are not found",
        "They have gradients, right ones even, but nobody asks for them: they silently never move.",
        {"core:Layer._members": ("if isinstance(value, (list, tuple)):", "if isinstance(value, tuple):")},
        "pytorch/pytorch #715",
    ),
    Exhibit(
        "a shared matrix is listed once for each use",
        "It takes three steps instead of one. How many parameters has the model?",
        {"core:Layer.named_parameters": ("if id(parameter) not in seen:", "if name not in seen:")},
        "dotnet/TorchSharp #532",
    ),
    Exhibit(
        "Adam takes the number of the parameter for the step",
        "The bias correction of the last layers is nearly off from the first step on.",
        {
            "training:Adam.step": (
                """adam_update(
        data, grad, self.m, self.v, self.lr, self.betas, self.eps, t, scale=scale, team=self.team
    )""",
                """end = 0
    for t, piece in enumerate(self.flat.pieces, 1):
        part = slice(end, end + piece.data.size)
        end = part.stop
        arrays = (array[part] for array in (self.weights, self.flat.grad, self.m, self.v))
        adam_update(*arrays, self.lr, self.betas, self.eps, t, scale=scale, team=self.team)""",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "Adam counts a step for every parameter",
        "After one step of a model with 100 tensors t is 100. One step, one count.",
        {"training:Adam.step": ("self.t += 1", "self.t += len(self.flat.pieces)")},
        "flashlight/flashlight #143",
    ),
    Exhibit(
        "Adam's second moment takes its share from beta1",
        "Five times too large with the paper's betas, so every step is too small.",
        {
            "training.optimizers:_adam_update": (
                "work *= (1.0 - beta2) * scale * scale",
                "work *= (1.0 - beta1) * scale * scale",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "Adam does not correct its first moment",
        "It starts at 0: without the division by 1 - b^t the first steps are a tenth of what they should be.",
        {"training.optimizers:_adam_update": ("work *= lr * root / (1.0 - beta1**t)", "work *= lr * root")},
        "allenai/OLMo-core #317",
    ),
    Exhibit(
        "the gradient of the last step is never cleared",
        "A momentum nobody asked for: every step moves by the sum of all gradients so far.",
        {"training.step:step_with": ("optimizer.zero_grad()", "pass")},
        "tenstorrent/tt-blacksmith #711",
    ),
    Exhibit(
        "the gradient is clipped after the step",
        "Two lines in the wrong order: the clipped gradient is thrown away.",
        {
            "training.step:step_with": (
                "optimizer.step(scale=clip_factor(norm, max_norm))",
                "optimizer.step()\n    optimizer.flat.grad *= clip_factor(norm, max_norm)",
            )
        },
        "awslabs/graphstorm #1366",
    ),
    Exhibit(
        "the schedule is stepped once for every tensor",
        "The warm-up is over after a few steps.",
        {"training.loop:training_steps": ("plan.schedule(step)", "plan.schedule(step * len(optimizer.flat.pieces))")},
        NUMPY,
    ),
    Exhibit(
        "the schedule starts at step 0",
        "0^-0.5 has no value. Code that takes step 0 for step 1 lags by one ever after.",
        {"training.loop:training_steps": ("plan.schedule(step)", "plan.schedule(max(step - 1, 1))")},
        "tugstugi/pytorch-saltnet #7",
    ),
    Exhibit(
        "the weights to be averaged are five times the same array",
        "A list of references to one array that goes on changing: the mean is the last of them.",
        {"training:AverageOfLast.update": ("self.snapshots[step] = weights.copy()", "self.snapshots[step] = weights")},
        "WenjieDu/PyPOTS #667",
    ),
    Exhibit(
        "every part of a batch counts the same",
        "The mean of two means is the mean only where both parts have as many tokens.",
        {
            "training.parallel.parts:shares_of": (
                "count / max(sum(counts), 1) for count in counts",
                "1 / len(counts) for count in counts",
            )
        },
        "karpathy/nanochat #59",
    ),
    Exhibit(
        "all threads draw the same dropout masks",
        "One seed for all: sequence 1 and sequence 33 of a batch lose the same units.",
        {
            "training.parallel.threads:DataParallel.__init__": (
                "make_generator([*seeds, i] if i else seeds)",
                "make_generator(seeds)",
            )
        },
        "pytorch/pytorch #3880",
    ),
)
