"""Bugs around the model: the layer protocol, `minitransformer.training` and `.data`."""

from minitransformer import core, training
from minitransformer.data import by_length, tasks
from minitransformer.exercises.planting import Exhibit
from minitransformer.layers import losses
from minitransformer.training import batches, clipping, optimizers
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
        "It takes three steps instead of one. How many parameters has the model?",
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
        """adam_update(
        self.weights[self.shard],
        self.flat.grad[self.shard],
        self.m,
        self.v,
        self.lr,
        self.betas,
        self.eps,
        self.t,
        scale=scale,
        team=self.team,
    )""",
        """end = 0
    for t, piece in enumerate(self.flat.pieces, 1):
        part = slice(end, end + piece.data.size)
        end = part.stop
        arrays = (array[part] for array in (self.weights, self.flat.grad, self.m, self.v))
        adam_update(*arrays, self.lr, self.betas, self.eps, t, scale=scale, team=self.team)""",
    ),
    Exhibit(
        "Adam counts a step for every parameter",
        "After one step of a model with 100 tensors t is 100. One step, one count.",
        training.Adam.step,
        "self.t += 1",
        "self.t += len(self.flat.pieces)",
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
        "betas: tuple[float, float] = (0.9, 0.98)",
        "betas: tuple[float, float] = (0.9, 0.999)",
    ),
)

STEP = (
    Exhibit(
        "the gradient of the last step is never cleared",
        "A momentum nobody asked for: every step moves by the sum of all gradients so far.",
        training.training_step,
        "optimizer.zero_grad()",
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
        "the norm is that of the first blocks of a large tensor",
        "Right for every tensor of a test that has one block: a threshold needs a test on both of its sides.",
        clipping.squares_of_blocks,
        "range(0, grad.size, step)",
        "range(0, min(grad.size, 4 * step), step)",
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
        training.training_step,
        "optimizer.step(scale=clip_factor(norm, max_norm))",
        "optimizer.step()\n    optimizer.flat.grad *= clip_factor(norm, max_norm)",
    ),
    Exhibit(
        "training ignores the label smoothing that was asked for",
        "The default of a function stood in for what the loss was told.",
        training.CrossEntropyLoss.forward,
        "self.label_smoothing, PAD,",
        "0.0, PAD,",
    ),
    Exhibit(
        "training runs without dropout",
        "One argument that is not passed on. The training loss gets better, the test does not.",
        training.forward_backward,
        "features(*batch.inputs, rng=rng)",
        "features(*batch.inputs)",
    ),
)

LOOP = (
    Exhibit(
        "the schedule is stepped once for every tensor",
        "Published. The warm-up is over after a few steps.",
        training.train,
        "optimizer.lr = schedule(step)",
        "optimizer.lr = schedule(step * len(model.parameters()))",
    ),
    Exhibit(
        "the schedule starts at step 0",
        "0^-0.5 has no value. Code that takes step 0 for step 1 lags by one ever after.",
        training.train,
        "optimizer.lr = schedule(step)",
        "optimizer.lr = schedule(max(step - 1, 1))",
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
        "A generator made again in the loop: the same units are silent at every step.",
        training.DataParallel.map,
        "return function(self.replicas[0], self.loss_fn, batch, self.rngs[0], weight, measure)",
        "return function(self.replicas[0], self.loss_fn, batch, make_generator(2), weight, measure)",
    ),
    Exhibit(
        "every step sees the same batch",
        "A seed set inside the loop. The loss falls to 0 in no time.",
        batches.Batches.next,
        "self.data.batch(self.rng, self.size)",
        "self.data.batch(np.random.default_rng([0, 1]), self.size)",
    ),
    Exhibit(
        "the weights to be averaged are five times the same array",
        "A list of references to one array that goes on changing: the mean is the last of them.",
        training.AverageOfLast.update,
        "self.snapshots[step] = weights.copy()",
        "self.snapshots[step] = weights",
    ),
    Exhibit(
        "padding counts in the accuracy",
        "A model that always says padding is right most of the time.",
        losses.blockwise_loss,
        "right / total",
        "right / targets_n.size",
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
    Exhibit(
        "a batch is sorted by length, and its targets are not",
        "The shapes fit, and in a batch of one length nothing changes. Most answers belong to another question.",
        by_length.take,
        "[array[rows] for array in batch]",
        "[array[rows if i == 0 else np.sort(rows)] for i, array in enumerate(batch)]",
    ),
    Exhibit(
        "the last array decides how much padding is cut off",
        "Right for pairs, where every array ends with a token. Targets may end before the ids that they belong to.",
        by_length.take,
        "max(end, longest.get(ids.shape[1], 0))",
        "end",
    ),
)

EXHIBITS = (*PROTOCOL, *ADAM, *STEP, *LOOP, *DATA)
