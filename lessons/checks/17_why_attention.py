"""What lesson 17 says, against what it computed, and what is right where its reader writes a line."""

import re
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs" / "compare.md"


def dcell_o(run, through_y=1.0, gate="forget", step="at_p", slope=None):
    """The gradient of the cell of «o»; the options make mistakes of it."""
    cell = run.at_o.cell
    slope = 1 - np.tanh(cell) ** 2 if slope is None else slope
    return run.dcell_p * getattr(getattr(run, step), gate) + through_y * run.dy_o * run.at_o.read * slope


def dq_row(run, slope=None, scorer=None):
    """The gradient of the query of row p→o; the options make mistakes of it."""
    slope = 1 - run.match_row**2 if slope is None else slope
    return run.ds_row @ (slope * (run.scorer if scorer is None else scorer))


HANDS = {
    "dcell_o": (
        dcell_o,
        {
            "the path into the next cell is missing: two numbers hear of this cell": lambda run: (
                run.dy_o * run.at_o.read * (1 - np.tanh(run.at_o.cell) ** 2)
            ),
            "the path through y is missing: two numbers hear of this cell": lambda run: dcell_o(run, through_y=0.0),
            "the forget gate is that of «o», but the next cell stands behind that of «p»": lambda run: dcell_o(
                run, step="at_o"
            ),
            "the next cell stands behind its forget gate, not its write gate": lambda run: dcell_o(run, gate="write"),
            "the tanh between cell and y has no derivative": lambda run: dcell_o(run, slope=1.0),
            "the slope of tanh is 1 − tanh², and this is 1 − cell²": lambda run: dcell_o(
                run, slope=1 - run.at_o.cell**2
            ),
        },
    ),
    "dq_row": (
        dq_row,
        {
            "each pair has a slope of its own: a common one gives 0, as ds sums to 0 in a row": lambda run: dq_row(
                run, slope=np.ones_like(run.match_row)
            ),
            "the scorer is missing: it stands between match and the score": lambda run: dq_row(run, scorer=1.0),
            "match has been through the tanh already: its slope is 1 − match²": lambda run: dq_row(
                run, slope=1 - np.tanh(run.match_row) ** 2
            ),
            "one slope for the whole row: each pair has a tanh of its own": lambda run: (
                run.scorer * (1 - (run.ds_row @ run.match_row) ** 2)
            ),
            "this is the gradient of the scorer": lambda run: run.scorer * (run.ds_row @ run.match_row),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    lesson.example("source.e", run.e)
    lesson.example("source.x", run.x)
    quote_gates(lesson, run)
    quote_reach(lesson, run)
    quote_room(lesson, run)
    quote_docs(lesson)
    check_deeper(lesson, run)
    check_answers(lesson, run)
    claim(lesson, run)


def quote_gates(lesson, run):
    """Products of forget gates."""
    lesson.quote("After 24 steps that is 6.0e-8, about the rounding error of float32", 24, 2.0**-24, 32)
    lesson.quote("After 1,023 steps it is 1.1e-308", 1023, 2.0**-1023)
    lesson.quote("each gate is 1024/1025. How much is left of a gradient after 1,023 of them", 1024, 1025, 1023)
    gate = 1 / (1 + np.exp(-np.log(1024)))
    lesson.check("sigmoid(ln T) = T / (T + 1)", abs(gate - 1024 / 1025), 1e-15)
    lesson.quote("→ 1/e = 0.368", 1, np.exp(-1))
    lesson.check("what is left after 1,023 gates is about 1/e", abs(run.kept - np.exp(-1)), 1e-3)
    million = (1e6 / (1e6 + 1)) ** (1e6 - 1)
    lesson.check("... and for a million tokens", abs(million - np.exp(-1)), 1e-6)
    lesson.check("equal scores give each value do / S", even_share(run), 1e-15)


def even_share(run):
    """The largest difference between dv and do / S if all scores are equal."""
    rng = np.random.default_rng(5)
    q, k, v, do = (rng.standard_normal((rows, 3)) for rows in (1, 7, 7, 1))
    _, match, p = run.additive_attention(q, k, v, np.zeros(3))
    return np.abs(run.additive_attention_backward(do, v, np.zeros(3), match, p)[2] - do / 7).max()


def quote_reach(lesson, run):
    """The measured lengths of dx_1."""
    last = {name: values[-1] for name, values in run.reach.items()}
    zero, one, half, whole, learned, even = (last[name] for name in run.NAMES)
    lesson.quote("The whole recipe leaves 0.0020 for the first of 1,025 tokens", whole, 1025, within=0.02)
    lesson.quote("Attention with equal scores leaves 0.00098, which is 1/1025", even, 1, 1025)
    lesson.check("attention with equal scores divides by the number of tokens", abs(1025 * even - 1), 1e-9)
    lesson.quote("At the top the gradient is 18 times as long as that of a single token", half, within=0.03)
    lesson.check("forget bias 0: nothing is left", zero, 1e-290)
    lesson.check("forget bias 1: nothing is left", one, 1e-60)
    slope = np.polyfit(np.log(run.DISTANCES[4:]), np.log(run.reach[run.NAMES[3]][4:]), 1)[0]
    lesson.check("the whole recipe falls like 1/T", abs(slope + 1), 0.1)
    lesson.check("... and is within a factor 3 of equal scores", whole / even, 3.0)
    lesson.check("with random scores it is within a factor 2 of that", max(learned / even, even / learned), 2.0)
    lost = run.DISTANCES[int(np.argmax(np.array(run.reach["LSTM, forget 0"]) < 2.0**-24))]
    lesson.check("forget bias 0: lost in float32 from so many tokens on", lost, 64)


def quote_room(lesson, run):
    """A cell that forgets nothing, and a row that is sure."""
    weight = run.example["cross.p"][0, 3, 0]
    lesson.quote("gives 70 % of its weight to «s»", 100 * weight)
    lesson.quote("so the value of «s» hears 70 % of the row's do", 100 * weight)
    lesson.quote("The cosine is 0.030 on average, about 1/√1024", run.cosines.mean(), 1, 1024)
    lesson.check("1/√1024", abs(run.cosines.mean() - 1 / 32), 5e-3)
    lesson.quote("it scatters by 0.12,", run.cosines.std())
    lesson.check("as two random directions of 64 numbers do", abs(run.cosines.std() - 1 / 8), 0.01)
    k = np.random.default_rng(8).standard_normal((1024, 64))
    sure = np.zeros(1024)
    sure[0] = 1e3
    lesson.check("a row that is sure returns the first token", np.abs(run.softmax(sure) @ k - k[0]).max(), 0.0)


def quote_docs(lesson):
    """The library's own experiment with trained models."""
    if not DOCS.is_file():  # in a copy of the lessons alone
        return
    table = DOCS.read_text("utf-8").partition("<!-- table: recall -->")[2].partition("<!-- end -->")[0]
    (pairs,) = re.findall(r"^\| model \|.* (\d+) \|$", table, re.MULTILINE)
    vector, additive = (
        float(re.search(rf"^\| {name} \|.* ([\d.]+) \|$", table, re.MULTILINE)[1])
        for name in ("fixed vector", "additive")
    )
    lesson.quote("Shown 26 pairs of a letter and a digit", int(pairs))
    lesson.quote("is right in 33 of 100 cases", 100 * vector, 100)
    lesson.check("with additive attention in all", additive, at_least=1.0)


def check_deeper(lesson, run):
    """Gates of a random LSTM, and what both cost."""
    half, whole = run.product
    lesson.quote("0.19 on average, half of 1/e", run.product[half], 1, within=0.03)
    lesson.check("... half of 1/e", abs(run.product[half] * np.e - 0.5), 0.05)
    lesson.check("... the same with the whole recipe", abs(run.product[whole] / run.product[half] - 1), 0.05)
    lesson.quote("the cells grow to a size of 50", run.size[half], within=0.02)
    lesson.quote("only 4 % of them", 100 * run.slopes[half])
    lesson.quote("10 to 34 times as long as for one token", min(run.ratios[half]), max(run.ratios[half]), within=0.05)
    lesson.quote("the cells stay at 0.06, every tanh is open", run.size[whole])
    lesson.check("every tanh is open", run.slopes[whole], at_least=1.0)
    low, high = min(run.ratios[whole]), max(run.ratios[whole])
    lesson.quote("the gradient is between 0.0014\nand 0.0020", low, high, within=0.03)
    lesson.quote("For C = 512 the two are equal at 1,024 tokens", 512, 2 * 512)
    assert 8 * 512**2 == 4 * 512**2 + 2 * 1024 * 512


def check_answers(lesson, run):
    """The numbers in the answers."""
    gate = 1 / (1 + np.exp(-1))
    lesson.quote("sigmoid(1) = 0.731, and 0.731^15 = 0.0091, so after 15 steps", 1, gate, gate, 15, gate**15, 15)
    assert gate**15 < 0.01 < gate**14
    lesson.quote("2 · (1 + 1 + 2) = 8, and two weights by e⁸, which is 2,981", 2, 1, 1, 2, 8, np.exp(8))
    share = (128 / 129) ** 1023
    lesson.check("exercise 2: exp(−1024/128) is about right", abs(share / np.exp(-8) - 1), 0.1)
    lesson.quote("exp(−1024/128) = 0.00034", -1024, 128, np.exp(-8))
    best, worst = (np.tanh(sign * 50 * np.array([1.0, -1.0, 2.0])) for sign in (1, -1))
    p = run.softmax(np.array([best, worst]) @ np.array([1.0, -1.0, 2.0]))
    lesson.check("question 5: the largest ratio of two weights", abs(p[0] / p[1] / np.exp(8) - 1), 1e-12)
    shift = np.array([1.0, -2.0, 0.5])
    moved = run.additive_attention(run.q - shift, run.k + shift, run.v, run.scorer)[0]
    lesson.check("question 3: additive attention stays", run.error(moved, run.o), 1e-13)
    dots, moved = run.q @ run.k.T, (run.q - shift) @ (run.k + shift).T
    lesson.check("... and dot products change", np.abs(run.softmax(dots) - run.softmax(moved)).max(), at_least=0.05)
    dq, dk = run.found[:2]
    lesson.check("the gradients of queries and keys have the same sum", np.abs(dq.sum(0) - dk.sum(0)).max(), 1e-15)


def claim(lesson, run):
    """Verdicts on popular texts."""
    whole, even = (run.reach[name][-1] for name in ("LSTM, forget ln T, write −ln T", "attention, equal scores"))
    lesson.claim(
        "a recurrent network cannot carry a gradient over a thousand tokens",
        "wrong",
        "a fresh LSTM whose forget gate begins at ln T and its write gate at −ln T passes "
        f"{whole:.4f} of the gradient of one token over 1,024 tokens, and attention with equal scores {even:.4f}; with "
        "a forget bias of 0 or 1 nothing arrives",
        said="courses and blog posts on why attention replaced recurrent networks",
    )
    lesson.claim(
        "attention won because gradients reach farther in it",
        "half right",
        "attention with equal scores divides the gradient by the number of tokens; what it adds is a place for each "
        f"token: in a sum of 1,024 vectors of 64 numbers each has a cosine of {run.cosines.mean():.3f}, and a sure row "
        "returns it whole",
        said="blog posts and lecture slides that compare attention with recurrent networks",
    )
