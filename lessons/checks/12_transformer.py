"""What lesson 12 says, against what it computed."""

import math

import numpy as np

from minitransformer.models import Transformer, TransformerConfig

HANDS = {
    "dM": (
        lambda run: run.dk @ run.W_k.T + run.dv @ run.W_v.T,
        {
            "the use as values is forgotten": lambda run: run.dk @ run.W_k.T,
            "the use as keys is forgotten": lambda run: run.dv @ run.W_v.T,
            "the matrices must be transposed (lesson 02)": lambda run: run.dk @ run.W_k + run.dv @ run.W_v,
            "the matrices are swapped": lambda run: run.dk @ run.W_v.T + run.dv @ run.W_k.T,
            "the gradients of two uses add, they are not averaged": lambda run: (
                (run.dk @ run.W_k.T + run.dv @ run.W_v.T) / 2
            ),
            "each gradient must go back through its own matrix": lambda run: run.dk + run.dv,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    lesson.example("output.p", run.p)
    lesson.example("output.L", run.L)
    for name, gradient in run.trained_grads.items():
        place, _, symbol = name.removeprefix("0.").rpartition(".")
        lesson.example(f"{place}.d{symbol}".lstrip("."), gradient)
    o, p = run.VOCABULARY.index("o"), run.VOCABULARY.index("p")
    lesson.quote("row p→o gives «o» 70 % and «p» 30 %", 100 * run.p[1, o], 100 * run.p[1, p])
    lesson.quote("the loss is 0.1108", run.L)
    lesson.quote("we move each of the 826 parameters", sum(value.size for value in run.trained.values()))
    entries = run.model.num_parameters()
    lesson.quote("one forward pass for each of its 63,082,496 parameters", entries, full_only=True)
    lesson.quote("A typical entry is ‖g‖ / 8,000", entries**0.5, within=0.01, full_only=True)
    lesson.quote("so 1e-9 ‖g‖ is 8e-6 of it", 1e-9, 8000 * 1e-9)
    lesson.check("chance that a normal number is below 0.001 of its deviation", math.erf(0.001 / math.sqrt(2)), 0.001)
    parts = [run.size(run.uses[use]) for use in ("source", "target", "output")]
    lesson.quote(
        "2.045 (source), 0.990 (target) and 0.438 (output), and dE has 2.288", *parts, run.size(run.trained_grads["E"])
    )
    lesson.quote("How many of the 35 logits (5 rows of 7) move if you add 0.1", run.z.size, *run.z.shape, 0.1)
    lesson.check("logits that one number of E moves: all but", (np.abs(run.moved_logits) < 1e-3).sum(), 0)
    right, _ = HANDS["dM"]
    lesson.check("dM of the example, from keys and values", np.abs(right(run) - run.example["dM"]).max(), 1e-14)
    back = sum(run.FORK.values()) - run.example["decoder.norm2.dy"][1]
    lesson.check("the fork's two gradients add up", np.abs(back).max(), 1e-15)
    lesson.check("a small model on NumPy: its gradient is finite", np.isfinite(run.grads_numpy).all(), at_least=1)
    total = sum(run.uses.values()) - run.trained_grads["E"]
    lesson.check("the three uses of E add up to dE", np.abs(total).max(), 1e-13)

    lesson.quote("dM is off by 57 % of its size", 100 * run.missing, within=0.05, full_only=True)
    lesson.quote("the gradient of her encoder by 64 %", 100 * run.missing_encoder, within=0.05, full_only=True)
    lesson.quote("has a cosine of 0.77", run.cosine, within=0.03, full_only=True)
    lesson.quote("8.7 million of the 63.1 million", run.zeros / 1e6, entries / 1e6, within=0.03, full_only=True)
    if not lesson.fast:
        lesson.check("shares of dM grow from layer to layer", np.diff(run.parts).min(), at_least=0.0)
        halves = np.array(run.arriving[1:]) / run.arriving[:-1]
        lesson.check("what a layer hands down of the gradient that arrives, least", halves.min(), at_least=0.4)
        lesson.check("and most", halves.max(), 0.7)
        other = [each.grad for name, each in run.model.named_parameters() if "feed_forward" not in name]
        lesson.check("zeros outside of the feed-forward networks", sum((each == 0).sum() for each in other), 1000)
    lesson.check("with two layers, dM has two shares, the smaller", min(map(run.size, run.two_shares)), at_least=1e-3)
    lesson.check("rows before a changed token move by", run.moved[run.right_attend], 1e-15)
    lesson.check("and if queries and keys come from the encoder by", run.moved[run.swapped], at_least=0.01)
    check_counts(lesson, run)


def check_counts(lesson, run):
    """How many parameters the base model has."""
    encoder = 4 * (512**2 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    decoder = encoder + 4 * (512**2 + 512) + 2 * 512
    layers = 6 * (encoder + decoder)
    lesson.quote(
        "3,152,384 and six times 4,204,032: 18.9 million in the encoder and 25.2 million",
        encoder,
        decoder,
        6 * encoder / 1e6,
        6 * decoder / 1e6,
    )
    lesson.quote("With 37,000 rows of E the total is 63,082,496", 37000, layers + 37000 * 512)
    base = Transformer(TransformerConfig(1000, 512, 8, 2048, 6), seed=None).num_parameters()
    lesson.check("encoder, decoder and E make up the library's total", abs(layers + 1000 * 512 - base), 0)
    fewest = -(-(64_500_000 - layers) // 512)  # tokens for which the total rounds to 65 million
    lesson.check("tokens that 65 million asks for, over 37,000", fewest / 37000, at_least=1.05)
    lesson.claim(
        "the base model has 65 million parameters",
        "half right",
        f"{layers + 37000 * 512:,} with V = 37,000, as in the text; 65 million takes {fewest:,} tokens or more",
        said="the paper (Table 3), and most texts after it",
    )
    lesson.claim(
        "encoder and decoder are built alike, so each has half of the parameters",
        "wrong",
        f"in base the encoder has {6 * encoder / 1e6:.1f} million parameters and the decoder {6 * decoder / 1e6:.1f} "
        "million: each decoder layer has a second attention",
        said="overview articles and slides",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("three shares of weight² = 4, and the slope 12", 2**2, ((2 + 1e-30j) ** 3).imag / 1e-30)
