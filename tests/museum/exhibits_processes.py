"""Bugs of several processes that share one batch."""

from minitransformer.exercises.planting import Exhibit
from minitransformer.training import loop
from minitransformer.training.parallel import faults, threads
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.run import TrainingRun

EXHIBITS = (
    Exhibit(
        "the processes' gradients are averaged though their numbers of tokens differ",
        "A mean of means counts a token of a short part for more.",
        ProcessParallel.map_own_part,
        "sum(loss_fn.num_terms(part.targets) for part in parts)",
        "self.communicator.size * loss_fn.num_terms(own.targets)",
    ),
    Exhibit(
        "the processes' gradients are added up without their weights",
        "Each is the gradient of a mean over one part: the sum is too large by the number of processes.",
        ProcessParallel.map_own_part,
        "self.accumulation.map(function, own, measure, terms)",
        "self.accumulation.map(function, own, measure)",
    ),
    Exhibit(
        "the weighted gradients of the processes are averaged once more",
        "The shares add up to 1 already. Adam hides a factor of all gradients, except from the clipping.",
        ProcessParallel.map,
        "self.communicator.add_up(parameter.grad.reshape(-1), self.in_order)",
        "self.communicator.add_up(parameter.grad.reshape(-1), self.in_order)\n"
        "        parameter.grad *= 1.0 / self.communicator.size",
    ),
    Exhibit(
        "all processes draw the same dropout masks",
        "Each has a generator of the same seed: the sequences at the same place of each part lose the same units.",
        threads.DataParallel.__init__,
        "range(rank * self.team.size, (rank + 1) * self.team.size)",
        "range(self.team.size)",
    ),
    Exhibit(
        "all processes compute the same part of a batch",
        "The rest is never learned from, and the loss falls all the same.",
        ProcessParallel.map_own_part,
        "own = parts[self.communicator.rank]",
        "own = parts[0]",
    ),
    Exhibit(
        "a process clips by the norm of its own gradient",
        "The norm is taken before the sum, so the processes scale by other factors and their weights drift apart.",
        ProcessParallel.map,
        "for parameter in self.parameters:",
        "from minitransformer.training.clipping import grad_norm\n\n"
        "    self.own_norm = grad_norm(self.parameters)\n"
        "    for parameter in self.parameters:",
        also=(
            (
                loop.training_step,
                "norm = optimizer.grad_norm()",
                "norm = getattr(workers, 'own_norm', None) or optimizer.grad_norm()",
            ),
        ),
    ),
    Exhibit(
        "the loss is that of one part",
        "The processes would see other losses, and not all would stop at one that is not finite.",
        ProcessParallel.map,
        "self.communicator.add_up(numbers, in_order=True)",
        "pass",
    ),
    Exhibit(
        "a process that has found an anomaly does not tell the others",
        "They wait for its gradient forever.",
        ProcessParallel.map,
        "except AnomalyFound as error:",
        "except ZeroDivisionError as error:",
    ),
    Exhibit(
        "the random states of one process are saved for all",
        "When the run is resumed, the processes draw the same dropout masks.",
        TrainingRun._load_state,
        "range(self.communicator.rank * len(rngs), (self.communicator.rank + 1) * len(rngs))",
        "range(len(rngs))",
    ),
    Exhibit(
        "a process whose error all have ends with status 0",
        "Scripts take the training for finished.",
        faults.ending_together,
        "raise SystemExit(STATUS[type(error)]) from None",
        "raise SystemExit(0) from None",
    ),
)
