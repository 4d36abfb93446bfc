"""Bugs of what looks for bugs: numbers that went wrong and are let through, or are laid at the wrong door."""

from minitransformer import training
from minitransformer.exercises.planting import Exhibit
from minitransformer.training.anomaly_hooks import AnomalyHooks
from minitransformer.training.run import TrainingRun

EXHIBITS = (
    Exhibit(
        "the optimizer steps before the norm is checked",
        "The message is right, and the weights are gone: look before you step.",
        training.training_step,
        "    if diagnostics and isinstance(workers, ProcessParallel):",
        """    optimizer.step(scale=clip_factor(norm, max_norm))
        if diagnostics and isinstance(workers, ProcessParallel):""",
    ),
    Exhibit(
        "only the loss is checked",
        "A backward pass can go wrong where the forward pass did not. Then the loss is nan one step too late.",
        training.Diagnostics.check,
        "math.isfinite(loss) and math.isfinite(norm)",
        "math.isfinite(loss)",
    ),
    Exhibit(
        "the step that went wrong is computed again with other dropout masks",
        "What is looked for may not be there the second time. Put the generators back first.",
        training.Diagnostics._find,
        "restore_generator(rng, state)",
        "pass",
    ),
    Exhibit(
        "half a step's gradients stay with the replicas",
        "Whoever catches the error and goes on adds them to the next batch's.",
        training.Diagnostics._forget_gradients,
        "parameter.take_grad()",
        "pass",
    ),
    Exhibit(
        "what a layer was given is taken for its own work",
        "Between two layers stands code of the layer around them: attention itself is such code.",
        AnomalyHooks._look_at_given,
        "giver = self.running[-1]",
        "giver = named",
    ),
    Exhibit(
        "every overflow is a fault",
        "1 / (1 + exp(1000)) overflows, and is 0 as it should be. Only what comes out counts.",
        AnomalyHooks._look,
        "self.notes.clear()",
        "pass",
    ),
    Exhibit(
        "weights that are lost are saved all the same",
        "The newest checkpoint is then one that no run can continue from, and good ones are deleted to keep it.",
        TrainingRun.state,
        "self.diagnostics.check_weights()",
        "pass",
    ),
)
