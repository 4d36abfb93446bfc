"""Bugs around the model: the layer protocol, `minitransformer.training` and `.data`."""

from minitransformer import core, training
from minitransformer.data import tasks
from minitransformer.evaluation import accuracy as metrics
from minitransformer.exercises.planting import Exhibit
from minitransformer.training import optimizers, session
from minitransformer.training import parallel as data_parallel
from minitransformer.training.clipping import clip_factor

PROTOCOL = (
    Exhibit(
        "parameters of layers in a list are not found",
        "They have gradients, right ones even, but nobody asks for them: they silently never move.",
        core.Layer._members,
        "if isinstance(value, (list, tuple)):",
        "if isinstance(value, tuple):",
    ),
    Exhibit(
        "a shared matrix is listed once for each use",
        "It takes three steps in place of one. How many parameters has the model?",
        core.Layer.named_parameters,
        "if id(parameter) not in seen:",
        "if name not in seen:",
    ),
    Exhibit(
        "zero_grad gives every parameter a new gradient",
        "The flat vector that the optimiser reads keeps the old one.",
        core.Parameter.zero_grad,
        "self._is_zero = True",
        "self.grad = xp.zeros_like(self.data)",
    ),
    Exhibit(
        "a gradient is noted as zero and never cleared",
        "Cheap is good, but what is in the array when somebody looks at it?",
        core.Parameter.grad.fget,
        "self._grad[...] = 0",
        "pass",
    ),
    Exhibit(
        "a gradient may be overwritten although it is not zero",
        "Right for the first use of a matrix after zero_grad; the second one loses what the first has found.",
        core.Parameter.overwritable,
        "return self._grad if self._is_zero else None",
        "return self._grad",
    ),
    Exhibit(
        "loading swaps the arrays of a model",
        "The optimiser goes on moving the old ones, and the model stays as it was loaded.",
        core.Layer.load_state_dict,
        "parameter.data[...] = to_device(state[name])",
        "parameter.data = to_device(state[name])",
    ),
)

ADAM = (
    Exhibit(
        "Adam takes the number of the parameter for the step",
        "Published. The bias correction of the last layers is nearly off from the first step on.",
        training.Adam.step,
        "for parameter, m, v in zip(self.parameters, self.m, self.v, strict=True):",
        "for self.t, (parameter, m, v) in enumerate(zip(self.parameters, self.m, self.v, strict=True), 1):",
    ),
    Exhibit(
        "Adam counts a step for every parameter",
        "After one step of a model with 100 tensors t is 100. One step, one count.",
        training.Adam.step,
        """self.t += 1
    for parameter, m, v in zip(self.parameters, self.m, self.v, strict=True):""",
        """for parameter, m, v in zip(self.parameters, self.m, self.v, strict=True):
        self.t += 1""",
    ),
    Exhibit(
        "Adam's second moment takes its share from beta1",
        "Published. Five times too large with the paper's betas, so every step is too small.",
        optimizers._adam_update,
        "work *= (1.0 - beta2) * scale * scale",
        "work *= (1.0 - beta1) * scale * scale",
    ),
    Exhibit(
        "Adam's second moment takes the clipping factor once",
        "v is a mean of squares: a gradient that is halved counts a quarter.",
        optimizers._adam_update,
        "work *= (1.0 - beta2) * scale * scale",
        "work *= (1.0 - beta2) * scale",
    ),
    Exhibit(
        "Adam does not correct its first moment",
        "It starts at 0: without the division by 1 - b^t the first steps are a tenth of what they should be.",
        optimizers._adam_update,
        "work *= lr * root / (1.0 - beta1**t)",
        "work *= lr * root",
    ),
    Exhibit(
        "Adam adds eps inside the root",
        "Not to be seen at 1e-9, unless the gradient is that small, too.",
        optimizers._adam_update,
        """xp.sqrt(v, out=work)
    work += root * eps""",
        "xp.sqrt(v + root * root * eps, out=work)",
    ),
    Exhibit(
        "Adam's eps is not scaled with the root that it is added to",
        "With the two corrections drawn into one factor, eps must take part: the paper of Adam calls it eps-hat.",
        optimizers._adam_update,
        "work += root * eps",
        "work += eps",
    ),
    Exhibit(
        "Adam makes a new array for the parameters",
        "data = data - step: the model keeps the old array, and silently never moves.",
        optimizers._adam_update,
        "data -= work",
        "data = data - work",
    ),
    Exhibit(
        "Adam moves only the first block of each parameter",
        "Block by block, and never to the second: numbers beyond the first 32,768 silently never move.",
        optimizers.adam_update,
        "range(0, data.size, size)",
        "range(0, 1, size)",
    ),
    Exhibit(
        "Adam's defaults are PyTorch's and not the paper's",
        "(0.9, 0.999) and (0.9, 0.98) both train. A default is a claim, and wants a test.",
        training.Adam.__init__,
        "betas=(0.9, 0.98)",
        "betas=(0.9, 0.999)",
    ),
)

STEP = (
    Exhibit(
        "the gradient of the last step is never cleared",
        "A momentum nobody asked for: every step moves by the sum of all gradients so far.",
        training.Trainer.step,
        "parameter.zero_grad()",
        "pass",
    ),
    Exhibit(
        "every tensor is clipped by its own norm",
        "The direction changes: large gradients shrink, small ones stay. One norm, one factor.",
        training.clip_grad_norm,
        "parameter.grad *= factor",
        "parameter.grad *= clip_factor(grad_norm([parameter]), max_norm)",
    ),
    Exhibit(
        "gradients below the limit are scaled up to it",
        "A factor without its minimum of 1 turns clipping into normalising.",
        clip_factor,
        "xp.minimum(max_norm / (norm + 1e-6), 1.0)",
        "max_norm / (norm + 1e-6)",
    ),
    Exhibit(
        "the gradient is clipped after the step",
        "Two lines in the wrong order: the clipped gradient is thrown away.",
        training.Trainer.step,
        "self.optimizer.step(lr, scale=clip_factor(norm, self.max_norm))",
        "self.optimizer.step(lr)\n    self.parameters[0].grad *= clip_factor(norm, self.max_norm)",
    ),
    Exhibit(
        "training ignores the label smoothing of the configuration",
        "The default of a function stood in for what the configuration says.",
        data_parallel.forward_backward,
        "model.config.label_smoothing, PAD,",
        "0.0, PAD,",
    ),
    Exhibit(
        "training runs without dropout",
        "One argument that is not passed on. The training loss gets better, the test does not.",
        data_parallel.forward_backward,
        "model.forward(*batch.inputs, rng=rng)",
        "model.forward(*batch.inputs)",
    ),
)

LOOP = (
    Exhibit(
        "the schedule is stepped once for every tensor",
        "Published. The warm-up is over after a few steps.",
        session.Session.advance,
        "learning_rate(self.step, self.trainer.model",
        "learning_rate(self.step * len(self.trainer.model.parameters()), self.trainer.model",
    ),
    Exhibit(
        "the schedule starts at step 0",
        "0^-0.5 has no value. Code that takes step 0 for step 1 lags by one ever after.",
        session.Session.advance,
        "learning_rate(self.step, self.trainer.model",
        "learning_rate(max(self.step - 1, 1), self.trainer.model",
    ),
    Exhibit(
        "the schedule takes the larger of its two branches",
        "Huge at the first step, rising after the warm-up: what does min of the two curves look like, and max?",
        training.noam,
        "min(step**-0.5, step * warmup**-1.5)",
        "max(step**-0.5, step * warmup**-1.5)",
    ),
    Exhibit(
        "every step draws the same dropout masks",
        "A generator made anew in the loop: the same units are silent at every step.",
        data_parallel.DataParallel.forward_backward,
        "return forward_backward(self.replicas[0], batch, self.rngs[0], measure=measure)",
        "return forward_backward(self.replicas[0], batch, make_generator(2), measure=measure)",
    ),
    Exhibit(
        "every step sees the same batch",
        "A seed set inside the loop. The loss falls to 0 in no time.",
        session.Session.advance,
        "task.batch(self.data_rng, settings.batch_size)",
        "task.batch(np.random.default_rng([settings.seed, 1]), settings.batch_size)",
    ),
    Exhibit(
        "the weights to be averaged are five times the same array",
        "A list of references to one array that goes on changing: the mean is the last of them.",
        session.Session.advance,
        "snapshots.append(self.weights.copy())",
        "snapshots.append(self.weights)",
    ),
    Exhibit(
        "padding counts in the accuracy",
        "A model that always says padding is right most of the time.",
        metrics.token_accuracy,
        "counts = target != PAD",
        "counts = target == target",
    ),
)

DATA = (
    Exhibit(
        "training draws from the held-out side, too",
        "A comparison that is true on both sides. The test then asks what training has seen.",
        tasks.ToyTask.batch,
        "source[is_held_out(source) == held_out]",
        "source[is_held_out(source) >= held_out]",
    ),
    Exhibit(
        "the side of a sequence depends on its padding",
        "The same sequence in a wider batch changes sides: a leak that no comparison of the arrays finds.",
        tasks.is_held_out,
        "(column == PAD) | (column == EOS)",
        "column == EOS",
    ),
)

EXHIBITS = (*PROTOCOL, *ADAM, *STEP, *LOOP, *DATA)
