"""What lesson 08 says, against what it computed."""

import itertools

from support.example_numbers import numbers

import numpy as np

from minitransformer.example import load_example
from minitransformer.gradcheck import complex_step
from minitransformer.layers import CrossAttention, SelfAttention

HANDS = {
    "q_heads": (
        lambda run: run.q_flat.reshape(5, 2, 3).transpose(1, 0, 2),
        {
            "a bare reshape moves no number: head 0 has got all features of the first rows": lambda run: (
                run.q_flat.reshape(2, 5, 3)
            ),
            "the rows are cut into heads, and the pieces of one head not yet brought together": lambda run: (
                run.q_flat.reshape(5, 2, 3)
            ),
            "head 0 has got every second feature, not the first three": lambda run: run.q_flat.reshape(
                5, 3, 2
            ).transpose(2, 0, 1),
            "the heads have changed places": lambda run: run.q_flat.reshape(5, 2, 3).transpose(1, 0, 2)[::-1],
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    check_the_example(lesson, run)
    check_the_library(lesson, run)
    quote_the_heads(lesson, run)
    quote_costs(lesson, run)
    check_by_hand(lesson, run)
    check_the_tests(lesson, run)
    check_the_copied_line(lesson, run)


def check_the_example(lesson, run):
    """Cross-attention of the running example, forward and backward, with the lesson's own code."""
    example = run.example
    x, M, dy = (example[name][None] for name in ("cross.x", "M", "cross.dy"))
    layer = {name: example[f"cross.{name}"] for name in run.NAMES}
    y, cache = run.forward(x, M, layer, 2)
    for name, given in (("q", x), ("k", M), ("v", M)):
        lesson.example(f"cross.{name}", run.split_heads(given @ layer[f"W_{name}"] + layer[f"b_{name}"], 2)[0])
    lesson.example("cross.p", cache[1].weights[0])
    lesson.example("cross.y", y[0])
    gradients = run.backward(dy, x, M, layer, 2, cache)
    lesson.example("dM", gradients["M"][0])
    for name in ("W_q", "W_k", "W_v", "W_o", "b_q", "b_v", "b_o"):
        lesson.example(f"cross.d{name}", gradients[name])
    lesson.quote("(0.714, 0.028, −1.451, −0.984, 0.327, −0.563)", *(x @ layer["W_q"] + layer["b_q"])[0, 1])


def check_the_library(lesson, run):
    """Its layer, with the lesson's parameters."""
    given = run.inputs
    layer = CrossAttention(run.C, run.H, dtype="float64")
    layer.q.W.data[...], layer.q.b.data[...] = given["W_q"], given["b_q"]
    layer.kv.W.data[...] = np.hstack([given["W_k"], given["W_v"]])
    layer.kv.b.data[...] = np.hstack([given["b_k"], given["b_v"]])
    layer.output.W.data[...], layer.output.b.data[...] = given["W_o"], given["b_o"]
    y, cache = layer.forward(given["x"], given["M"])
    lesson.check("y equals that of the library's CrossAttention", run.error(y, run.y), 1e-13)
    dx, dM = layer.backward(run.dy, cache)
    lesson.check("dx, too", run.error(run.gradients["x"], dx), 1e-12)
    lesson.check("dM, too", run.error(run.gradients["M"], dM), 1e-12)


def quote_the_heads(lesson, run):
    """What the two heads of cross-attention look at, and what the model does without one of them."""
    p = run.example["cross.p"]
    last_two = p[1, :, 2:].sum(-1)
    lesson.check("head 1, first three rows: weight on the last two letters", last_two[:3].min(), at_least=0.75)
    lesson.check("... and in the others it is about half", np.abs(last_two[3:] - 0.5).max(), 0.06)
    words = ["".join(letters) for letters in itertools.product("opst", repeat=4)]
    weights = np.array([numbers(load_example(word))["cross.p"][1] for word in words])
    lesson.quote("its first four rows spend 0.78 of their weight", weights[:, :4, 2:].sum(-1).mean())
    both, alone_0, alone_1 = run.right.values()
    lesson.quote(
        "of the 340 words of one to four letters the model reverses 139 instead of 332; without head 0 it reverses 4",
        *(340, alone_0, both, 0, alone_1),
    )
    lesson.quote("it makes the difference between 139 and 332 words", alone_0, both)
    word = load_example()
    before = numbers(word)["output.p"][1, 3]
    word.model.decoder.layers[0].cross_attention.sublayer.output.W.data[3:] = 0
    lesson.quote("the «o» gets 0.95 instead of 0.70", numbers(word)["output.p"][1, 3], before)
    lesson.claim(
        "each head learns one relation that can be named",
        "half right",
        f"of two heads in a small model, one reverses the word; the other looks at its end, whatever the row, and "
        f"without it {alone_0} words are right instead of {both}",
        said="blog posts and lecture slides that show attention maps",
    )


def quote_costs(lesson, run):
    """Parameters, and products."""
    one, eight, sixteen = (SelfAttention(512, heads, rng=None).num_parameters() for heads in (1, 8, 16))
    lesson.quote("with C = 512 it is 1,050,624, for 1 head and for 8", 512, one, 1, eight and 8)
    lesson.check("parameters with 8 heads, less those with 1", abs(eight - one), 0)
    lesson.quote("4 · 512² + 4 · 512 = 1,050,624", 4, 512, 4, 512, sixteen)
    lesson.quote("With D = 64 and H = 16 it is 2,100,736", 64, 16, 4 * 512 * 1024 + 3 * 1024 + 512)
    lesson.claim(
        "multi-head attention has more parameters than one head",
        "wrong",
        f"at d_model = 512, {one:,} with 1 head and {eight:,} with 8: it does not depend on the number of heads",
        said="blog posts and answers in forums",
    )


def check_by_hand(lesson, run):
    """The two heads made by hand, against one head that asks for both letters, and exercise 1."""
    match = np.exp(10) / (np.exp(10) + 3)
    lesson.quote("exp(10) / (exp(10) + 3) = 0.99986", 10, 10, 3, match)
    p = run.inside.weights[0]
    lesson.check("head 0: weight of the letter before", run.error(np.diagonal(p[0], -1), match), 1e-13)
    lesson.check("head 1: weight of the mirror image", run.error(np.diagonal(p[1][:, ::-1]), match), 1e-13)
    lesson.check("head 0, first row: one quarter of each letter", run.error(p[0, 0], 0.25), 1e-15)
    parts = np.split(run.y_hand[0], 2, axis=-1)
    assert [read_letters(part) for part in parts] == ["?sto", "pots"]
    eye, before, mirror, after = np.eye(4), np.eye(4, k=-1), np.eye(4)[::-1], np.eye(4, k=1)
    stop, swapped = (np.hstack([letters, eye])[None] for letters in (eye, eye[[2, 1, 0, 3]]))
    change = {}
    for count, asks in ((1, [before + mirror]), (2, [before, mirror])):
        layer = make_by_hand(asks)
        change[count] = np.abs(
            run.forward(stop, stop, layer, count)[0] - run.forward(swapped, swapped, layer, count)[0]
        )
    lesson.check("one head: what t gets when s and o change places", change[1][0, 1].max(), 1e-15)
    lesson.check("two heads", change[2][0, 1].max(), at_least=0.99)
    y = run.forward(stop, stop, make_by_hand([before, mirror, after]), 3)[0][0, :, 8:]
    assert read_letters(y) == "top?"


def read_letters(y):
    """What a head has read, from its features of each token (4, 4)."""
    return "".join("stop"[row.argmax()] if row.max() > 0.5 else "?" for row in y)


def make_by_hand(asks):
    """The layer whose heads look for the positions in the rows of `asks`, one (4, 4) for each head."""
    nothing, heads = np.zeros((4, 4)), len(asks)
    return {
        "W_q": np.vstack([np.hstack([nothing] * heads), 20 * np.hstack(asks)]),
        "W_k": np.vstack([np.hstack([nothing] * heads), np.hstack([np.eye(4)] * heads)]),
        "W_v": np.vstack([np.hstack([np.eye(4)] * heads), np.hstack([nothing] * heads)]),
        "W_o": np.eye(4 * heads),
        **dict.fromkeys(("b_q", "b_k", "b_v", "b_o"), 0.0),
    }


def check_the_tests(lesson, run):
    """Which of three tests notice a reshape without a transpose."""
    found = dict(run.found)
    for name, functions in (
        ("merge bare", (run.split_heads, run.bare_merge, run.bare_split, run.merge_heads)),
        ("split bare", (run.bare_split, run.merge_heads, run.split_heads, run.bare_merge)),
    ):
        found[name] = one_bare(run, *functions)
    lesson.check("gradient test, all four layers: worst error", max(values[0] for values in found.values()), 1e-12)
    one_wrong = found["merge bare"], found["split bare"]
    lesson.check("leak test, right layer: change", found["right"][1], 0.0)
    lesson.check("leak test, both bare: change", found["bare"][1], 0.0)
    lesson.check("leak test, one bare: least change", min(values[1] for values in one_wrong), at_least=0.05)
    lesson.check("permutation test, right layer: change", found["right"][2], 1e-13)
    least = min(values[2] for values in (found["bare"], *one_wrong))
    lesson.check("permutation test, the three wrong layers: least change", least, at_least=0.1)
    lesson.check("right split: every letter moves every output", run.reach.min(), at_least=0.05)
    lesson.check(
        "bare reshape: nothing between the two squares", max(run.islands[:2, 2:].max(), run.islands[2:, :2].max()), 0.0
    )
    lesson.check(
        "... and something within them", min(run.islands[:2, :2].min(), run.islands[2:, 2:].min()), at_least=0.05
    )
    tokens = np.repeat(np.arange(8), 6).reshape(1, 8, 6)  # each number is the token that it comes from
    rows = run.bare_split(tokens, 2)[0].reshape(16, 3)
    assert (rows == (np.arange(16) // 2)[:, None]).all()  # "row i is piece i mod H of token ⌊i/H⌋"
    lesson.claim(
        "a leak test and a gradient check together show that attention is right",
        "wrong",
        "with bare reshapes for split and merge both pass (change 0, error "
        f"{found['bare'][0]:.0e}); a permutation of the tokens changes the output by {found['bare'][2]:.0%}",
        said="common practice in tests of attention code",
    )


def one_bare(run, split, merge, split_back, merge_back):
    """The three tests of a layer whose split and merge do not belong together; backward needs others."""

    def forward(x, allowed=None):
        return run.forward(x, x, run.encoder, 2, allowed, split, merge)

    y, cache = forward(run.tokens)
    gradients = run.backward(run.upstream, run.tokens, run.tokens, run.encoder, 2, cache, split_back, merge_back)
    true = complex_step(lambda x: (run.upstream * forward(x)[0]).sum(), run.tokens)
    leak = np.abs(forward(run.changed, run.causal)[0] - forward(run.tokens, run.causal)[0])[:, :-1].max()
    moved = run.error(forward(run.tokens[:, run.order])[0], y[:, run.order])
    return run.error(gradients["x"] + gradients["M"], true), leak, moved


def check_the_copied_line(lesson, run):
    """Values made with W_k and b_k: who gets a gradient?"""

    def loss(moved):
        given = {**run.inputs, **moved}
        copied = {**given, "W_v": given["W_k"], "b_v": given["b_k"]}
        return (run.dy * run.forward(given["x"], given["M"], copied, run.H)[0]).sum()

    largest = {
        name: np.abs(complex_step(lambda value, name=name: loss({name: value}), run.inputs[name])).max()
        for name in ("W_v", "b_k")
    }
    lesson.check("copied line: gradient of W_v", largest["W_v"], 0.0)
    lesson.check("... and of b_k", largest["b_k"], at_least=0.1)
    lesson.check("the right layer: gradient of b_k", np.abs(run.gradients["b_k"]).max(), 1e-13)


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    picture = np.arange(6 * 4 * 3).reshape(6, 4, 3)
    upper, red = picture.reshape(3, 6, 4)[0], picture.transpose(2, 0, 1)[0]
    lesson.check("a bare reshape takes the upper third", np.abs(np.sort(upper.ravel()) - picture[:2].ravel()).max(), 0)
    lesson.check("the transpose takes one color", np.abs(red - picture[..., 0]).max(), 0)
