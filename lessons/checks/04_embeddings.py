"""What lesson 04 says, against what it computed."""

from support.lab import error

import numpy as np

from minitransformer.example import load_example
from minitransformer.functional import cross_entropy
from minitransformer.gradcheck import complex_step

HANDS = {
    "rows_of_t_and_o": (
        lambda run: [run.de[0] + run.de[3], run.de[1] + run.de[2]],
        {
            "this is what the last use left; the gradients of both uses add": lambda run: run.de[[3, 2]],
            "this is the gradient of the first use; the gradients of both add": lambda run: run.de[[0, 1]],
            "these are means; the gradients of both uses add": lambda run: [
                (run.de[0] + run.de[3]) / 2,
                (run.de[1] + run.de[2]) / 2,
            ],
            "the two rows are exchanged": lambda run: [run.de[1] + run.de[2], run.de[0] + run.de[3]],
        },
    ),
    "dE_output": (
        lambda run: run.dz.T @ run.y,
        {
            "this is the gradient of Eᵀ; a row of E belongs to a token": lambda run: run.y.T @ run.dz,
            "this is row p→o alone; the rows of all positions add": lambda run: run.dz[1:2].T @ run.y[1:2],
            "dz is already divided by N, so this divides twice": lambda run: run.dz.T @ run.y / len(run.y),
            "the sign: descent subtracts the gradient later": lambda run: -run.dz.T @ run.y,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    lookup_and_output(lesson, run)
    three_matrices(lesson, run)
    factor(lesson, run)
    training(lesson, run)


def lookup_and_output(lesson, run):
    E, y, z, e, example = run.E, run.y, run.z, run.e, run.example
    for name, computed in (("source.e", e), ("target.e", E[run.target_ids]), ("output.z", z)):
        lesson.example(name, computed)
    lesson.example("decoder.norm3.dy", run.dy)
    lesson.example("dE", run.dE)
    root = np.sqrt(6)
    lesson.example("source.x", root * e + example["PE"][:4])
    lesson.example("target.x", root * E[run.target_ids] + example["PE"])
    lesson.example("source.de", root * example["source.dx"])
    lesson.example("target.de", root * example["target.dx"])
    lesson.quote('so "stop" is 5, 6, 3, 4', *run.source_ids)
    N, V, C = 25000, 37000, 512
    lesson.quote("25,000 tokens, V = 37,000 and C = 512, it takes 474 billion products", N, V, C, N * V * C / 1e9)
    right, wrong, de = run.embed_backward(run.de, run.toot, 7), run.wrong, run.de
    lesson.quote("(1, 1) + (1000, 1000) = (1001, 1001), and «o» gets (110, 110)", *de[0], *de[3], *right[6], *right[3])
    lesson.quote("Then «t» gets (1000, 1000), «o» gets (100, 100)", *wrong[6], *wrong[3])
    lost = 100 * (1 - run.different / len(run.drawn))
    lesson.quote("among 25,000 tokens, some as common as", len(run.drawn))
    lesson.quote("it loses 71 % of the gradients", lost)
    lesson.quote("Only 7,310 of the tokens are different", run.different)
    lesson.quote("one gradient for each of these and loses 71 %", lost)
    lesson.quote("The most common token comes 2,245 times", run.most)
    lesson.quote("y is (0.654, 2.738, −3.596, −0.190, −2.599, 1.957)", *y[1])
    others = np.delete(z[1], [3, 4]).max()
    lesson.quote(
        "5.56 with the row of «o», 4.70 with that of «p», and at most 0.56 with the others", *z[1, 3:5], others
    )
    p = np.exp(z[1]) / np.exp(z[1]).sum()
    lesson.quote("lesson 03 makes 70 % and 30 % of this", 3, 100 * p[3], 100 * p[4])
    lesson.quote(
        "that part has the length 1.64, while the output sends 0.30, and the target 0.07",
        *(np.linalg.norm(run.parts[use][3]) for use in ("source", "output", "target")),
    )
    lesson.quote("√6 · (−0.25) + 0.909 = 0.297", 6, E[3, 0], example["PE"][2, 0], example["source.x"][2, 0])


def three_matrices(lesson, run):
    """Each part of dE alone: one of three equal matrices moves, the others stand still."""
    model, _, source, target_in, target_out = load_example()
    three, matrices = run.with_three_matrices(model)
    for use, matrix in matrices.items():
        still = matrix.data

        def loss(moved, matrix=matrix):
            matrix.data = moved
            return cross_entropy(three(source, target_in), target_out)[0]

        lesson.check(f"the part of the {use} alone", error(run.parts[use], complex_step(loss, still)), 1e-13)
        matrix.data = still


def factor(lesson, run):
    C = 512
    lesson.quote("which for C = 512 is 0.044", C, 1 / np.sqrt(C))
    lesson.quote("0.39 % for C = 512", 100 * 2 / (2 + C), C)
    lesson.quote("= 2/3 66.7 % for any C", 2, 3, 100 * 2 / 3)
    one, small = run.first_loss.values()
    lesson.quote("size √512 = 22.6", 512, np.sqrt(C))
    lesson.quote("the first loss is then 93 nats, although ln V = 10.5", one, np.log(37000))
    lesson.quote("With entries of size 1/√C it is 11.0", 1, small)
    lesson.quote("grows by C = 512, not by √512, and the division is by √64 = 8", run.growth, C, 64, np.sqrt(64))
    lesson.claim(
        "embeddings are multiplied by √d_model to make up for attention's division by √d_k",
        "wrong",
        f"the factor enters a dot product twice: it grows by {run.growth:.0f}, and is divided by {np.sqrt(64):.0f}",
        said="question-and-answer sites and blog posts",
    )


def training(lesson, run):
    bet, lengths, last, paper = run.bet, run.lengths, run.last, "the paper's"
    V = len(run.task.vocabulary)
    sentence = "bets 41 % on the token that it has just read. Without √C it bets 4 %, where 1/V is 3 %"
    lesson.quote(sentence, 100 * bet[True], 100 * bet[False], 1, 100 / V)
    source, target, output = lengths[True]
    lesson.quote("length 1.42, that of the target 0.77 and that of the source 0.47", output, target, source)
    for part in lengths[False][:2]:
        lesson.quote("the two inputs have 0.09 each", part)
    first = {name: np.mean([run.losses[name, start][0] for start in range(run.starts)]) for name in run.forms}
    lesson.quote("form is 4.35 nats, above ln V = 3.37", first[paper], np.log(V), full_only=True)
    lesson.quote("with V = 29 has a first loss of 27.1", V, first["size 1"], full_only=True)
    lesson.quote("ln 29 is 3.4", V, np.log(V))
    trained = {"full_only": True, "within": 0.2}
    lesson.quote("the factor has a loss of 0.02 nats", last["no factor"], **trained)
    lesson.quote("the paper's form has 0.11", last[paper], **trained)
    lesson.quote("is bad, with 0.36", last["size 1"], **trained)
    lesson.quote("ends at 4.5 %", 100 * run.share["no factor", 0], full_only=True, within=0.1)
    lesson.quote("their share of x begins at 3 %", 100 * 2 / (2 + run.width))
    if not lesson.fast:
        curve = {name: np.mean([run.losses[name, start] for start in range(run.starts)], axis=0) for name in run.forms}
        slower = curve["no factor"][80:100].mean() / curve[paper][80:100].mean()
        for start in range(run.starts):
            paper_curve, none_curve = (
                np.convolve(run.losses[name, start], np.ones(10) / 10) for name in (paper, "no factor")
            )
            lesson.check("green is above blue at step 100", none_curve[99] / paper_curve[99], at_least=1)
            lesson.check("green is below blue at step 140", none_curve[139] / paper_curve[139], 1)
        lesson.check("no factor is slower at first: ratio of the losses, steps 81 to 100", slower, at_least=1)
        lesson.check("and ends lower: ratio in the last 20 steps", last["no factor"] / last[paper], 0.6)
        lesson.check("size 1 ends higher: ratio in the last 20 steps", last["size 1"] / last[paper], at_least=1)
    found = (
        "at d_model = 512 the tokens begin with 0.39 % of the input's mean square, instead of 66.7 %; but a small "
        "model learns to copy all the same"
    )
    if not lesson.fast:
        share = max(run.share["no factor", start] for start in range(run.starts))
        found += f", to a loss of {last['no factor']:.2f} nats against {last[paper]:.2f}, with a share of {share:.0%}"
    lesson.claim(
        "without the factor √d_model the positions drown the tokens",
        "half right",
        found,
        said="textbooks, lecture notes and blog posts",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(10_000)[:64]
    ids[40] = ids[7]
    d, right, wrong = rng.standard_normal((64, 16)), np.zeros((10_000, 16)), np.zeros((10_000, 16))
    np.add.at(right, ids, d)
    wrong[ids] += d
    lesson.quote("Only the rows of the 63 customers", np.any(right != 0, axis=1).sum())
    lost = np.flatnonzero(np.any(right != wrong, axis=1))
    assert list(lost) == [ids[7]]
    lesson.check("the line keeps the second gradient alone", np.abs(wrong[ids[7]] - d[40]).max(), 0.0)
