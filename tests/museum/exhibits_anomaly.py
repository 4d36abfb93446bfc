"""Bugs of what looks for bugs: numbers that went wrong and are let through, or are laid at the wrong door."""

from minitransformer import training
from minitransformer.exercises.planting import Exhibit
from minitransformer.training import anomaly_hooks as watching
from minitransformer.training import diagnostics as anomaly
from minitransformer.training import session

EXHIBITS = (
    Exhibit(
        "the update is made before the norm is looked at",
        "The message is right, and the weights are gone: look before you step.",
        training.Trainer.step,
        """self.guard.check(partial(self._again, batch), loss, norm, lr)
    self.optimizer.step(lr, scale=clip_factor(norm, self.max_norm))""",
        """self.optimizer.step(lr, scale=clip_factor(norm, self.max_norm))
    self.guard.check(partial(self._again, batch), loss, norm, lr)""",
    ),
    Exhibit(
        "only the loss is looked at",
        "A backward pass can go wrong where the forward pass did not. Then the loss is nan one step too late.",
        anomaly.Guard.check,
        "math.isfinite(loss) and math.isfinite(norm)",
        "math.isfinite(loss)",
    ),
    Exhibit(
        "the step that went wrong is computed again with other dropout masks",
        "What is looked for may not be there the second time. Put the generators back first.",
        anomaly.Guard._find,
        "restore_generator(rng, state)",
        "pass",
    ),
    Exhibit(
        "half a step's gradients stay with the replicas",
        "Whoever catches the error and goes on adds them to the next batch's.",
        anomaly.Guard._forget_gradients,
        "parameter.take_grad()",
        "pass",
    ),
    Exhibit(
        "what a layer was given is taken for its own work",
        "Between two layers stands code of the layer around them: attention itself is such code.",
        watching.Watch._look_at_given,
        "giver = self.running[-1]",
        "giver = here",
    ),
    Exhibit(
        "every overflow is a fault",
        "1 / (1 + exp(1000)) overflows, and is 0 as it should be. Only what comes out counts.",
        watching.Watch._look,
        "self.notes.clear()",
        "pass",
    ),
    Exhibit(
        "weights that are lost are put away all the same",
        "The newest checkpoint is then one from which nothing can go on, and the good ones make room for it.",
        session.Session.state,
        "self.trainer.guard.check_weights()",
        "pass",
    ),
)
