"""What lesson 02 says, against what it computed."""

from itertools import product

import numpy as np

HANDS = {
    "dW_1": (
        lambda run: run.x.T @ run.da,
        {
            "this is dW transposed: each row of it belongs to an output": lambda run: run.da.T @ run.x,
            "this is the row p→o alone; the weight touches its output in every token": (
                lambda run: run.x[1:2].T @ run.da[1:2]
            ),
            "this is the mean over the tokens; their gradients add": lambda run: run.x.T @ run.da / len(run.x),
            "the gate is forgotten: this is from dr, not da": lambda run: run.x.T @ run.dr,
        },
    ),
    "gated": (
        lambda run: run.dr * (run.a > 0),
        {
            "this looks at the sign of dr, but a opens and closes the gate": lambda run: run.dr * (run.dr > 0),
            "an open gate has the slope 1, not a": lambda run: run.dr * run.relu(run.a),
            "the gate is forgotten: a unit that is off lets nothing through": lambda run: run.dr,
            "the gate is the wrong way round": lambda run: run.dr * (run.a <= 0),
        },
    ),
}


def products_that_fit(N, C, F):
    """How many of the eight products of x and dy have the shape of W, and how many of the four with W that of x."""
    x, dy, W = np.zeros((N, C)), np.zeros((N, F)), np.zeros((C, F))
    of_x = [*product((x, x.T), (dy, dy.T)), *product((dy, dy.T), (x, x.T))]
    of_W = product((dy, dy.T), (W, W.T))
    return fit(of_x, (C, F)), fit(of_W, (N, C))


def fit(pairs, shape):
    """How many of these products exist and have this shape."""
    return sum(left.shape[1] == right.shape[0] and (left @ right).shape == shape for left, right in pairs)


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    x, W_1, a, dy, gradients = (
        run.example["decoder.ffn.x"],
        run.W_1,
        run.a,
        run.example["decoder.ffn.dy"],
        run.gradients,
    )
    for name, computed in {"a": a, "r": run.r, "y": run.y}.items():
        lesson.example(f"decoder.ffn.{name}", computed)
    for name, gradient in gradients.items():
        lesson.example(f"decoder.ffn.d{name}", gradient)

    before, after, far = (100 * run.stepped[size][1] for size in (0.0, 0.3, 1.0))
    losses = [run.stepped[size][0] for size in (0.0, 0.3)]
    p = run.example["output.p"][1]
    lesson.quote("row p→o gives «o» 70 % and «p» 30 %", 100 * p[3], 100 * p[4])
    lesson.check(
        "four rows do well: the least probability of the right letter", np.delete(before, 1).min(), at_least=90
    )
    lesson.quote("dy = (0.075, −0.007, −0.025, −0.078, 0.054, −0.019)", *dy[1])
    lesson.quote("the loss grows by 0.075 times as much", dy[1, 0])
    lesson.quote("gives its letter 88 % instead of 70 %", after[1], before[1])
    lesson.quote("row bos→p, which gave its letter 95 %", before[0])
    lesson.quote("raise the bias of unit 0 from −0.18 to", 0, run.b_1[0])
    lesson.check("a bias of −0.1 opens the gate of unit 0", a[1, 0] + (-0.1 - run.b_1[0]), at_least=0)
    count = sum(gradients[name].size for name in run.PARAMETERS)
    lesson.quote("computes them from its input and from 110 numbers", count)
    eps = np.finfo(np.float64).eps
    lesson.quote("about 2e-16, by 1e-15 gives 0.2", eps, 1e-15, eps / 1e-15)
    sentence = (
        "0.175 · (−0.62) + 1.020 · 0.79 − 1.544 · (−0.13) + 1.118 · 0.35 − 1.190 · 0.74 + 0.581 · 0.26 + 0.05 = 0.610"
    )
    terms = [number for c in range(6) for number in (abs(x[1, c]), W_1[c, 1])]  # the sign of x stands before its term
    lesson.quote(sentence, *terms, run.b_1[1], a[1, 1])
    lesson.check("the signs of x in this sum", (np.sign(x[1]) == [1, 1, -1, 1, -1, 1]).all(), at_least=1)
    lesson.quote("Units 0, 5, 6 and 7 have negative", *np.flatnonzero(a[1] < 0))

    lesson.quote("output 3, with −0.078, should rise", 3, dy[1, 3])
    lesson.quote("Those below r are dr, whose last is 0.055", gradients["r"][1, 7])
    largest = max(run.PARAMETERS, key=lambda name: np.abs(gradients[name]).max())
    place = np.unravel_index(np.abs(gradients[largest]).argmax(), gradients[largest].shape)
    lesson.check("the largest gradient is that of the weight from feature 2 to unit 1", largest == "W_1", at_least=1)
    lesson.quote("the weight from feature 2 to unit 1", *place)
    lesson.check("and it is negative", gradients[largest][place] < 0, at_least=1)
    lesson.check("unit 1 gets the heaviest complaint", np.abs(gradients["a"][1]).argmax() == 1, at_least=1)
    shares = x[:, 2] * gradients["a"][:, 1]
    lesson.quote("= 0.028 − 0.206 − 0.031 + 0.000 + 0.000 = −0.209", *np.abs(shares), shares.sum())
    lesson.check("the signs of these terms", (np.sign(shares[:3]) == [1, -1, -1]).all(), at_least=1)
    zeros = sum(np.count_nonzero(gradients[name] == 0) for name in run.PARAMETERS)
    lesson.quote("13 of the 110 numbers learn nothing", zeros, count)
    lesson.check("unit 6 is off in all rows", a[:, 6].max(), 0.0)

    lesson.quote(
        "gives «o» 88 % instead of 70 %, and the loss falls from 0.1108 to 0.0710", after[1], before[1], *losses
    )
    lesson.quote("pays for it, and falls from 95 % to 89 %", before[0], after[0])
    lesson.quote("at 1.0 our row reaches 96 %", 1.0, far[1])
    lesson.quote("bos→p is down to 40 %", far[0])
    fitting = [products_that_fit(*sizes) for sizes in ((5, 6, 8), (5, 6, 6), (6, 6, 6))]
    lesson.check("one product fits dW, or two, or all eight", [dW for dW, _ in fitting] == [1, 2, 8], at_least=1)
    lesson.check("one product fits dx, or two", [dx for _, dx in fitting[:2]] == [1, 2], at_least=1)

    middle = (run.relu(run.h) - run.relu(-run.h)) / (2 * run.h)
    lesson.check("at the kink the difference says 1/2", abs(middle - 0.5), 1e-12)
    slope = run.complex_step(lambda a: run.relu(a).sum(), np.zeros(1))[0]
    lesson.quote("where it says 1, the slope on the right", slope)
    ours = run.relu_backward(np.ones(1), np.zeros(1))[0]
    lesson.check("at the kink our backward says 0", abs(ours), 0.0)

    words = {mistake: 100 * share for mistake, (_, share) in run.trained.items()}
    lesson.quote("100 % of the unseen words", words["dW transposed"], within=0.02, full_only=True)
    lesson.quote("for the four matrices it is 100 %", words["dW = 0"], within=0.02, full_only=True)
    lesson.quote("every layer below: 22 %", words["dx = dy W"], within=3.0, full_only=True)  # rounding grows
    if not lesson.fast:
        lesson.quote("and 91 % from another start", 100 * run.train_with("dx = dy W", seed=1)[1], within=0.7)
        least = min(words[mistake] for mistake in ("no mistake", "dW transposed", "dW = 0"))
        lesson.check("words right in the other three runs", least, at_least=97)
        lesson.check("words right with the wrong dx", words["dx = dy W"], at_most=90)
    lesson.claim(
        "if the loss falls, the gradients are right",
        "wrong",
        "with dW transposed in every square matrix, or without any gradient for them, a Transformer reverses as many "
        "unseen words as with the right gradient",
        said="the usual smoke test of hand-written layers",
    )

    sums = run.N * run.F
    lesson.quote("With 2,000 tokens and 512 units there are 1,024,000 sums", 2000, 512, sums)
    lesson.quote("We expect 6.5 of them to cross at h = 1e-5, and 9 did", 2 * run.h / np.pi * sums, run.h, run.crossed)
    lesson.quote("wrong by 0.67 %", 100 * run.off)


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    x, W, dy = np.array([1.0, 2, 3, 4]), np.array([1.0, 0, -1]), np.array([1.0, 10])
    slid = np.array([np.eye(4)[n : n + 3] for n in range(2)])  # (2, 3, 4): which x each weight meets for each output
    dW = run.complex_step(lambda W: (dy * (slid @ x @ W)).sum(), W)
    dx = run.complex_step(lambda x: (dy * (slid @ x @ W)).sum(), x)
    lesson.quote("and dW = (21, 32, 43)", *dW)
    lesson.quote("and dx = (1, 10, −1, −10)", *dx)
