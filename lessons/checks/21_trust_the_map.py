"""What lesson 21 says, against what it computed."""

import numpy as np

from minitransformer.functional import scaled_dot_product_attention

HANDS = {
    "both": (
        lambda run: np.column_stack([run.v, np.ones(5)]),
        {
            "the equation of the sum is missing: a column of ones": lambda run: run.v,
            "a sum of 1 is p's business: the product is 0 for δ if the column is ones, not the weights": (
                lambda run: np.column_stack([run.v, run.p[4]])
            ),
            "it must have a row for each key: this is transposed": (lambda run: np.column_stack([run.v, np.ones(5)]).T),
            "the column of ones comes last, the rest is right": lambda run: np.column_stack([np.ones(5), run.v]),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    quote_the_row(lesson, run)
    check_the_count(lesson, run)
    quote_all_heads(lesson, run)
    quote_the_copy(lesson, run)
    quote_deeper(lesson, run)
    check_answers(lesson, run)
    claim(lesson, run)


def quote_the_row(lesson, run):
    """The three maps of row t→s, and p of "stop" from its o."""
    jonas, aylin = run.ends
    lesson.quote("Jonas 0.513 0.000 0.023 0.238 0.225", *jonas)
    lesson.quote("Aylin 0.149 0.223 0.054 0.000 0.574", *aylin)
    for end in run.ends:
        lesson.check("no weight is negative", -end.min(), 1e-15)
    word = np.array([run.word.tokens.index(letter) for letter in "pots"])
    right = run.numbers(run.word)["output.z"].argmax(axis=-1)[:4]
    assert (right == word).all()
    said = run.five["output.z"].argmax(axis=-1)[:5]
    assert (said != run.ids[::-1]).any(), "it is right"
    assert said[4] == run.EOS, "row t→s does not write «eos»"
    library, _ = scaled_dot_product_attention(*(run.five[f"cross.{name}"][None, 1:] for name in "qkv"))
    lesson.check("o of the row, against the library", run.error(run.row @ run.v, library[0, 0, 4]), 1e-13)
    lesson.example("cross.p[1]", run.back)
    lesson.example("cross.o[1]", run.back @ run.example["cross.v"][1])


def check_the_count(lesson, run):
    """S − D − 1, and more if values depend on each other."""
    rng = np.random.default_rng(0)
    for S, D in ((4, 3), (5, 3), (9, 4), (12, 4), (3, 4)):
        lesson.check(
            f"directions for S = {S}, D = {D}", len(run.unnoticed(rng.standard_normal((S, D)))), max(0, S - D - 1)
        )
    v = rng.standard_normal((9, 4))
    delta = run.unnoticed(v)
    both = np.column_stack([v, np.ones(9)])
    lesson.check("δ [v 1] = 0", np.abs(delta @ both).max(), 1e-13)


def quote_all_heads(lesson, run):
    """All weights of cross-attention moved."""
    lesson.check("directions in each row", max(abs(count - 4) for count in run.counts), 0)
    assert len(run.counts) == 10 * 16 * 9
    lesson.quote("On average 0.09 of the weight moves", np.mean(run.shares), within=0.15, full_only=True)
    lesson.quote("in 68 of 100 rows the largest", 100 * np.mean(run.same), 100, within=0.1, full_only=True)
    lesson.check("a weight that moved is not negative", -min(change.weights.min() for change in run.changes), 1e-12)


def quote_the_copy(lesson, run):
    """What the trained copy does."""
    lesson.quote("The copy still gets 98 of 100 words right", run.right_copy, 100, within=0.03, full_only=True)
    if lesson.fast:
        return
    lesson.check("the same largest weight, of 100 rows", 100 * run.equal, 5)
    lesson.check("it counts at the letter's own place", run.own_place, at_least=99)
    on = np.sort(run.on_letter)[::-1]
    lesson.quote(
        "two of its 16 heads still give the right letter 0.47 and 0.43", 16, *on[:2], within=0.35, full_only=True
    )
    lesson.check("... and the third", on[2], 0.25)
    moved, elsewhere = run.moves[run.own].mean(), run.elsewhere
    lesson.quote("move by 0.99, and from the best other place by 0.01", moved, elsewhere, within=0.5, full_only=True)
    lesson.check("the answer, by the letter's own place", moved, at_least=0.95)
    lesson.check("... and by the best other", elsewhere, 0.03)
    left = np.array(run.left)
    lesson.quote("of 100 letters only 54 are right", 100, left[run.working[0]], within=0.4, full_only=True)
    others = np.delete(left, run.working)
    lesson.quote("any one of the 14 others can go, and at least 96 are right", len(others), others.min(), within=0.05)


def quote_deeper(lesson, run):
    """The linear program, and what ranks heads."""
    lesson.quote(
        "only from 0.452 to 0.316 on average", np.mean(run.first), np.mean(run.least), within=0.1, full_only=True
    )
    lesson.check("the optimum is no more than the walk's end", np.max(np.subtract(run.least, run.first)), 1e-9)
    tap = run.taps["decoder.layers.0.cross_attention.sublayer"]
    best = run.moved(tap.weights[0, 0, 0], tap.values[0, 0])
    lesson.check("the best map leaves o as it is", np.abs((best - tap.weights[0, 0, 0]) @ tap.values[0, 0]).max(), 1e-9)
    found = [run.spearman(values, run.costs) for values in run.ranks.values()]
    assert len(run.every) == 48
    lesson.quote("with a rank correlation of 0.90", found[2], within=0.12, full_only=True)
    lesson.quote(
        "much less, 0.50, and the slope of the mean loss, 0.43", found[0], found[1], within=0.5, full_only=True
    )
    check_the_slope(lesson, run)


def check_the_slope(lesson, run):
    """∂L/∂scale = Σ_t do_t·o_t, in the running example: a scale on head 1 of cross-attention."""
    example, h = run.example, 1e-5
    o, do, W_o = example["cross.o"][1], example["cross.do"][1], example["cross.W_o"][3:]
    layer = run.load_example().model.decoder.layers[0].cross_attention.sublayer
    lesson.check("o W_o of the library", np.abs(layer.output.W.data[3:] - W_o).max(), 0)
    losses = []
    for scale in (1 + h, 1 - h):
        word = run.load_example()
        with run.intervene(word.model, run.heads(word.model)[-1]._replace(scale=scale)):
            z = word.model(word.source, word.target_in)
            losses.append(float(run.CrossEntropyLoss().forward(z, word.target_out)[0]))
    lesson.check("∂L/∂scale = Σ do·o", abs((losses[0] - losses[1]) / (2 * h) - (do * o).sum()), 1e-8)


def check_answers(lesson, run):
    """Exercise 1, and questions 1 and 2."""
    (delta,) = run.unnoticed(np.array([[0.0], [1.0], [2.0]]))
    lesson.check("δ = (1, −2, 1)", np.abs(delta / delta[0] - [1, -2, 1]).max(), 1e-13)
    p, delta = np.array([0.25, 0.5, 0.25]), np.array([1.0, -2.0, 1.0])
    ends = run.slide(p, delta), run.slide(p, -delta)
    lesson.check("its ends", np.abs(np.array(ends) - [[0.5, 0, 0.5], [0, 1, 0]]).max(), 1e-15)
    lesson.check("equal values: S − 1 directions", abs(len(run.unnoticed(np.ones((6, 3)))) - 5), 0)
    rng = np.random.default_rng(1)
    s = rng.standard_normal((7, 2)) @ rng.standard_normal((2, 8))
    logs = np.log(run.softmax(s)[0])
    rank = np.linalg.matrix_rank(logs - logs.mean(axis=1, keepdims=True), tol=1e-9)
    lesson.check("rank of ln p, for D = 2", rank, 2)


def claim(lesson, run):
    """Verdicts on popular texts."""
    lesson.claim(
        "an attention map shows what the output was made of",
        "half right",
        "if S ≤ D + 1 and the rows of [v 1] are independent, o determines the map; beyond, S − D − 1 directions lead "
        "to other maps with the same o, and in a model with 16 heads of cross-attention all maps moved and no logit "
        "changed",
        said="explanations of single answers by attention maps",
    )
    lesson.claim(
        "the mean over heads shows where a model looks",
        "wrong",
        f"a copy trained to another mean map is right in {run.right_copy:.0f} of 100 words, its largest weight at the "
        f"same place in {100 * run.equal:.0f} of 100 rows; two of its 16 heads still look at the right letter, and the "
        "mean hides them",
        said="figures in papers and in tools for attention",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    columns = np.random.default_rng(7).standard_normal((40, 5))
    columns[:, 4] = columns[:, 0] + columns[:, 1]
    lesson.check("directions that no prediction notices", 5 - np.linalg.matrix_rank(columns) - 1, 0)
    lesson.check("(1, 1, −1)", np.abs(columns @ [1, 1, 0, 0, -1]).max(), 1e-13)
