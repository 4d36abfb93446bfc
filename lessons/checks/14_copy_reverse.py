"""What lesson 14 says, against what it computed."""

import itertools

import numpy as np

from minitransformer.data.tasks import make_batch
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam, CrossEntropyLoss, noam, training_step
from minitransformer.vocabulary import BOS, EOS, PAD

HANDS = {  # name: (what is right, {known mistake: what it gives})
    "dz_row": (
        lambda run: (run.p[1] - run.p_star[1]) / 8,
        {
            "divided by 5, the tokens of «pots» alone: L is the mean over all tokens that count": lambda run: (
                (run.p[1] - run.p_star[1]) / 5
            ),
            "divided by 10, all places of the batch: the two that are padding must not count": lambda run: (
                (run.p[1] - run.p_star[1]) / 10
            ),
            "this is the gradient of the row's own term: L is the mean of N of them": lambda run: (
                run.p[1] - run.p_star[1]
            ),
            "divided by 2, the answers: L is a mean over tokens": lambda run: (run.p[1] - run.p_star[1]) / 2,
            "the sign: this is the direction in which descent goes": lambda run: (run.p_star[1] - run.p[1]) / 8,
            "this is dp; go on through the softmax, as in lesson 03": lambda run: -run.p_star[1] / run.p[1] / 8,
            "p* is missing: the right token gets p − 1": lambda run: run.p[1] / 8,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    of_the_example(lesson, run)
    of_the_pieces(lesson, run)
    of_the_training(lesson, run)


def of_the_example(lesson, run):
    """The loss, its gradient and the one run that is five."""
    lesson.example("output.z", run.z[0])
    lesson.example("output.L", run.L)
    lesson.example("output.dz", run.dz[0])
    lesson.example("dE", run.one_run["source_embedding.tokens.E"])
    p = np.exp(run.z[0]) / np.exp(run.z[0]).sum(axis=-1, keepdims=True)
    right = p[np.arange(5), run.example.target_out[0]]
    lesson.quote("0.575 = 0.953 · 0.697 · 0.945 · 0.917 · 0.999", right.prod(), *right)
    terms = np.log(right)
    lesson.quote("= −0.048 − 0.361 − 0.057 − 0.087 − 0.001 = −0.554", terms[0], *-terms[1:], terms.sum())
    lesson.quote("L = 0.554 / 5 = 0.1108", -terms.sum(), 5, run.L)
    batch_dz = run.loss_and_gradient(
        np.pad(run.z, ((0, 1), (0, 0), (0, 0))), run.shift([run.pots, run.ot])[1], eps=0.0
    )[1]
    lesson.check("the line of row p→o", np.abs(HANDS["dz_row"][0](run) - batch_dz[0, 1]).max(), 1e-15)
    lesson.check("rows that do not change, other than 0 to 2", np.abs(run.change[:3]).max(), 0)
    lesson.check("rows 3 and 4 do, by", run.change[3:].min(), at_least=1e-3)
    lesson.quote("Of the 2 · 5 places in this batch, only N = 8 count", 2, 5, 8)
    o, wrong = run.example.tokens.index("o"), run.example.tokens.index("p")
    lesson.quote("row p→o gets (0.697 − 1) / 5 = −0.061 for «o»", p[1, o], 1, 5, run.dz[0, 1, o])
    lesson.quote("0.297 / 5 = 0.059 for «p»", p[1, wrong], 5, run.dz[0, 1, wrong])


def of_the_pieces(lesson, run):
    """The shift, the padding, the product of probabilities, the mask and the loop."""
    rows = np.array([[*run.pots], [*run.ot, PAD, PAD]])
    library = make_batch(rows, rows)
    target_in, target_out = run.shift([run.pots, run.ot])
    differing = (target_in != library.target_in).sum() + (target_out != library.target_out).sum()
    lesson.check("entries of our shift that differ from the library's", differing, 0)
    counts = (target_out != PAD).sum(axis=1)
    lesson.quote("tokens that count, 5 + 3 = 8", *counts, counts.sum())

    rng = np.random.default_rng(0)
    z = rng.standard_normal((2, 5, 9))
    loss, dz = run.loss_and_gradient(z, target_out, 0.1)
    lesson.check("largest gradient at padding", np.abs(dz[target_out == PAD]).max(), 0)
    z[target_out == PAD] += 100 * rng.standard_normal(9)
    moved = run.loss_and_gradient(z, target_out, 0.1)[0]
    lesson.check("loss moves with logits at padding by", abs(moved - loss), 0)

    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 2, "dropout": 0.0, "max_len": 64}
    model = Transformer(TransformerConfig(5, **sizes), seed=3, dtype="float64")
    every = np.array(list(itertools.product(range(5), repeat=3)))  # (125, 3)
    read = np.concatenate([np.full((125, 1), BOS), every[:, :2]], axis=1)
    z = model(np.repeat([[3, 4, 4, EOS]], 125, axis=0), read)
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    total = np.take_along_axis(p, every[..., None], axis=-1).prod(axis=1).sum()
    lesson.check("probabilities of all answers of 3 tokens sum to 1, within", abs(total - 1), 1e-13)

    model, target_in = run.example.model, run.example.target_in.copy()
    target_in[0, 3:] = [3, 3]
    moved = np.abs(model(run.example.source, target_in) - run.z)[0].max(axis=-1)
    lesson.check("rows 0 to 2 move, when tokens 3 and 4 change, by", moved[:3].max(), 0)
    lesson.check("row 3 does move, by", moved[3], at_least=1e-3)

    config, task = run.models["reverse"].config, run.tasks["reverse"]
    ours = run.learn(Transformer(config, seed=0, dtype="float64"), task, steps=3)
    other = Transformer(config, seed=0, dtype="float64")
    optimizer, loss_fn = Adam(other.parameters()), CrossEntropyLoss(run.eps)
    batches, theirs = np.random.default_rng(1), []
    for step in (1, 2, 3):
        optimizer.lr = noam(step, config.d_model, 100, 0.3)
        loss, _ = training_step(other, loss_fn, optimizer, task.batch(batches, 64), max_norm=np.inf)
        theirs.append(float(loss))
    lesson.check("three steps of our loop, and of the library's", np.abs(np.array(ours) - theirs).max(), 1e-11)


def of_the_training(lesson, run):
    """What was measured on the trained models."""
    lesson.quote("Each has 30,624 parameters", run.models["copy"].num_parameters())
    wanted = np.full(run.V, run.eps / run.V)
    wanted[0] += 1 - run.eps
    floor = -(wanted * np.log(wanted)).sum()
    lesson.quote("(0.639 nats for V = 29", floor, run.V)
    lesson.quote("By chance it would be 3.8 %", 100 / 26)
    lesson.quote("38 % of all places", 100 * run.padding, within=0.02)
    angles = run.angles
    cosines = np.cos(run.rates * (run.places[:, None, None] - run.places[None, :, None])).sum(axis=-1)
    lesson.check(
        "PE_t · PE_j is the sum of the cosines", np.abs(run.PE @ run.PE.T - cosines).max() / len(angles), 1e-13
    )
    if lesson.fast:
        return
    lesson.quote("Copy gets at least 95 % of them right", min(95, 100 * run.alone["copy"]))
    lesson.quote("reverse at least 70 %", min(70, 100 * run.alone["reverse"]))
    lesson.check("no shift: loss above the floor", np.mean(run.late[-20:]) - floor, at_most=0.03)
    lesson.check("no shift: tokens predicted", run.predicted, at_least=0.99)
    lesson.check("no shift: words written", run.copied, at_most=0.01)
    for name, curve in run.curve.items():
        curve, lengths = np.array(curve) / 100, np.array(run.lengths)
        lesson.check(f"{name}: loss above its floor", np.mean(run.losses[name][-100:]) - floor, at_most=0.06)
        lesson.check(f"{name}: worst length that was taught", curve[lengths <= 8].min(), at_least=0.9)
        lesson.check(f"{name}: right at 9 letters", curve[lengths == 9][0], at_most=0.9)
        lesson.check(f"{name}: best length of 11 letters or more", curve[lengths >= 11].max(), at_most=0.02)
        test, t = run.held_out_words(name, 8), np.arange(8)
        weights = run.models[name].attention_weights(*test.inputs).cross[0]  # (B, H, T, S)
        expected = weights[:, :, t, t if name == "copy" else 7 - t].mean(axis=(0, 2))
        lesson.check(f"{name}: smallest mean weight of a head on the expected letter", expected.min(), at_least=0.75)
    lesson.check("reverse: right at 9 letters", run.curve["reverse"][9 - 3] / 100, at_most=0.1)
    nine, twelve = (run.curve["copy"][length - 3] / 100 for length in (9, 12))
    lesson.claim(
        "a model trained by teacher forcing goes astray after its first mistake",
        "half right",
        f"it can, but need not: with only random letters before it, the copy model still writes "
        f"{run.alone['copy']:.0%} of the letters right, because it goes by place",
        said="papers and blog posts on exposure bias",
    )
    lesson.claim(
        "sinusoidal positions allow a model to extrapolate to longer sequences",
        "half right",
        f"scores that copy at any length exist, but training on up to 8 letters did not find them: copy gets "
        f"{nine:.0%} of the words with 9 letters right, {twelve:.0%} with 12",
        said="the paper (as a hope) and many tutorials",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("The 784 pixels, one place to the right", 28 * 28)
