"""What lesson 26 says, against what it computed."""

import math

import numpy as np

HANDS = {
    "dgain": (
        lambda run: (run.dy * run.x).sum(axis=(0, 1)),
        {
            "x is forgotten: each number is multiplied by its x on the way": lambda run: run.dy.sum(axis=(0, 1)),
            "this is a mean over the tokens: each of them moves as much as if it were alone": lambda run: (
                run.dy * run.x
            ).mean(axis=(0, 1)),
            "the sum over the sequences is missing: all of them share g": lambda run: (run.dy * run.x).sum(axis=1),
            "the sum over the tokens of a sequence is missing": lambda run: (run.dy * run.x).sum(axis=0),
            "nothing is summed: g has C numbers, and all tokens share them": lambda run: run.dy * run.x,
            "this sums over the features instead of the tokens": lambda run: (run.dy * run.x).sum(axis=-1),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    for name in ("E", "cross.W_q", "encoder.ffn.W_1", "decoder.self.b_v"):
        place, _, symbol = name.rpartition(".")
        lesson.example(f"{place}.d{symbol}".lstrip("."), run.true[name])
    lesson.example("output.z", run.z)
    lesson.quote("Of its 43 arrays of weights", len(run.true))
    everywhere = run.spoiled["decoder.norm3"]
    lesson.check("arrays that a mistake near the loss leaves right", len(run.true) - len(everywhere), at_most=5)
    lesson.check("gradients that it leaves right although they come later", missed(run), 0)
    lesson.check("a mistake at the very end spoils E alone", float(run.spoiled["encoder.self"] != {"E"}), 0)
    lesson.check("so does the decoder's self-attention", float(run.spoiled["decoder.self"] != {"E"}), 0)
    below = {"decoder.norm1", "decoder.self", "encoder.norm2", "encoder.self"}
    reached = {name.rpartition(".")[0] for name in run.spoiled["cross"]}
    lesson.check("places below cross-attention that it does not spoil", len(below - reached), 0)
    above = {at for at in reached if at in ("decoder.norm2", "decoder.ffn", "decoder.norm3", "cross")}
    lesson.check("places above it that it spoils", len(above), 0)
    lesson.quote("near ln 29 = 3.37", 29, math.log(29))
    wanted = np.full(29, 0.1 / 29)
    wanted[0] += 0.9
    lesson.quote("keeps it above 0.639", -(wanted * np.log(wanted)).sum())
    lesson.check("the largest weight of a row if weights have the size 1", float(run.largest), at_least=0.95)


def missed(run):
    """Gradients that are not 0 and come after the decoder's last norm, and that its wrong dx leaves right."""
    alive = {name for name, gradient in run.true.items() if np.abs(gradient).max() > 1e-12}
    return len(alive - run.spoiled["decoder.norm3"] - {"decoder.norm3.gamma", "decoder.norm3.beta"})
