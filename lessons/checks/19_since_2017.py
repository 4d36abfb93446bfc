"""What lesson 19 says, against what it computed."""

import re
from pathlib import Path

import numpy as np

from experiments import since_2017
from minitransformer.functional import rotary_tables, rotate, rotate_backward, swiglu

DOCS = Path(__file__).parents[2] / "docs" / "since-2017.md"

HANDS = {
    "dquery": (
        lambda run: turned_back(run.arrived, run.cos, run.sin),
        {
            "it is turned forward once more": lambda run: turned_back(run.arrived, run.cos, -run.sin),
            "it is not turned back": lambda run: run.arrived,
            "one sign is missing, which makes a mirror image": lambda run: (
                np.array([1, -1]) * turned_back(run.arrived, run.cos, run.sin)
            ),
            "it is the key before it was turned": lambda run: run.key,
            "cosine and sine are exchanged": lambda run: turned_back(run.arrived, run.sin, run.cos),
        },
    ),
}


def turned_back(pair, cos, sin):
    """A pair of features, turned by the opposite angle."""
    return np.array([pair[0] * cos + pair[1] * sin, pair[1] * cos - pair[0] * sin])


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    for name in "qkv":
        lesson.example(f"decoder.self.{name}[0]", getattr(run, name))
    check_turns(lesson, run)
    check_pieces(lesson, run)
    quote_worth(lesson, run)
    quote_docs(lesson)
    claims(lesson, run)


def check_turns(lesson, run):
    """The product, the way back, and the library's."""
    near = run.product(2, 1)
    lesson.quote(
        "The product is 3.296 at positions 2 and 1, at 12 and 11, and at 1,002 and 1,001",
        near,
        2,
        1,
        12,
        11,
        1002,
        1001,
    )
    for t, j in ((12, 11), (1002, 1001)):
        lesson.check(f"the same product at positions {t} and {j}", run.error(run.product(t, j), near), 1e-12)
    lesson.check("... and another at 2 and 5", abs(run.product(2, 5) - near), at_least=0.5)
    unit = [run.turn(direction[None], np.array([[2.0]]))[0] for direction in np.eye(2)]  # the product is linear
    by_steps = np.array([direction @ run.arrived for direction in unit])
    lesson.check("turning back is the gradient", run.error(run.ours, by_steps), 1e-14)
    lesson.check("... as long as what arrived", abs(run.ours @ run.ours / (run.arrived @ run.arrived) - 1), 1e-14)
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 6))
    tables = rotary_tables(5, 6, dtype=np.float64)
    y, cache = rotate(x, *tables)
    lesson.check("turn, against the library's", run.error(run.turn(x, run.angles), y), 1e-14)
    lesson.check("turning back, too", run.error(run.turn(x, -run.angles), rotate_backward(x, cache)), 1e-14)
    q, k = run.query, run.key
    a, b = np.arctan2(q[1], q[0]), np.arctan2(k[1], k[0])
    lesson.quote("The query points at 0.795 radians and the key at 2.859", a, b)
    lesson.quote("by −2.064 more than the query: j − t = −2.064", a - b, a - b)
    lesson.check(
        "no distance gives a larger product",
        run.product(0, a - b) - max(run.product(0, j / 50) for j in range(315)),
        at_least=0.0,
    )


def check_pieces(lesson, run):
    """The gate, the cache of keys, and the order of norm and rotation."""
    gate, up = np.random.default_rng(1).standard_normal((2, 4, 5))
    y, _ = swiglu(np.concatenate([gate, up], axis=-1))
    lesson.check("the gate, against the library's", run.error(run.silu(gate) * up, y), 1e-14)
    h = 1e-30
    lesson.check(
        "silu's slope, against the complex step", run.error(run.dsilu(gate), run.silu(gate + 1j * h).imag / h), 1e-14
    )
    size = 2 * 16 * 8 * 64 * 2
    lesson.quote("2 · 16 layers · 8 heads · 64 features · 2 bytes = 32,768 bytes", 2, 16, 8, 64, 2, size)
    lesson.quote(
        "W_q has 2,048 columns where W_k has only 512, because 32 heads of queries share 8 heads",
        32 * 64,
        8 * 64,
        32,
        8,
    )
    one = run.turn(run.rms_norm(run.q_6, run.gamma)[0], run.angles)
    other = run.rms_norm(run.turn(run.q_6, run.angles), run.gamma)[0]
    lesson.check("with unequal γ, norm and rotation must keep their order", run.error(one, other), at_least=0.05)
    lesson.check("float16 cannot tell 2,048 from 2,049", float(np.float16(2049) - np.float16(2048)), 0.0)
    old, new = 2 * 32 * 96, 3 * 32 * 64  # weights of two matrices, and of three with two thirds of the width
    lesson.check("two thirds of F: three matrices as large as two", abs(old - new), 0.0)


def quote_worth(lesson, run):
    """The small experiment; the text that it reads differs a little between versions of Python."""
    found = {name: run.interval(values) for name, values in run.differences.items()}
    (rope, rope_half), (modern, modern_half), (rest, rest_half) = found.values()
    for sentence, mean in (
        ("RoPE alone lowers the loss by 0.189", -rope),
        ("and all six changes together by 0.180", -modern),
        ("without it, bring 0.052", -rest),
    ):
        lesson.quote(sentence, mean, within=0.3, full_only=True)
    for sentence, half in (("± 0.043", rope_half), ("± 0.023", modern_half)):
        lesson.quote(sentence, half, within=1.5, full_only=True)
    lesson.quote("± 0.014", rest_half, within=2.0, full_only=True)
    lesson.quote(
        "240 steps of Adam, each with 8 windows of 64 characters",
        *(run.count, since_2017.BATCH, since_2017.LENGTH),
        full_only=True,
    )
    lesson.quote("With twelve layers and 240 steps, the paper's block does not begin to learn", since_2017.STEPS[12])
    vocabulary = since_2017.scaling_law.load()[0].tokenizer.vocab_size
    old, new = (since_2017.config_of(name, 2, vocabulary) for name in ("2017", "modern"))
    lesson.quote(
        "H is 4, F 128 (with SwiGLU 85), and shared keys have G = 2; all six changes leave 25,792 of 28,576 parameters",
        *(old.num_heads, old.d_ff, new.d_ff, new.num_kv_heads),
        *(run.GPT(config, seed=0).num_parameters() for config in (new, old)),
    )
    apart, apart_half = run.interval(run.apart)
    lesson.quote("they differ by 0.009 ±", abs(apart), within=8.0, full_only=True)
    lesson.quote("0.009 ± 0.061", abs(apart), apart_half, within=8.0, full_only=True)
    if lesson.fast:
        return
    lesson.check("RoPE alone, nats", rope, -0.1)
    lesson.check("all six, nats", modern, -0.1)
    lesson.check("RoPE alone against all six, in halves of the interval", abs(apart) / apart_half, 1.0)
    lesson.check("RoPE alone against all six, nats apart", abs(rope - modern), 0.08)
    lesson.check("the other five, as a share of all six", rest / modern, 0.6)
    lesson.check("the gains add up to more than all six bring", (rope + rest) / modern, at_least=1.05)


def quote_docs(lesson):
    """The library's own experiment."""
    if not DOCS.is_file():  # in a copy of the lessons alone
        return
    text = DOCS.read_text("utf-8")
    table = text.partition("<!-- table: since-2017 -->")[2].partition("<!-- end -->")[0]
    rows = {}
    for name in ("RoPE", "modern", "SwiGLU"):
        (row,) = re.findall(rf"^\| {name} \| [\d.]+ \| -([\d.]+) ± ([\d.]+) \|", table, re.MULTILINE)
        rows[name] = [float(number) for number in row]
    lesson.quote("RoPE is worth 0.216 ± 0.025 nats, and all six together 0.205 ± 0.053", *rows["RoPE"], *rows["modern"])
    lesson.quote("brings 0.020 nats in that experiment", rows["SwiGLU"][0])


def claims(lesson, run):
    """Verdicts on popular texts."""
    if lesson.fast:
        return
    rope, modern = (run.differences[name].mean() for name in ("RoPE", "modern"))
    lesson.claim(
        "the parts of a modern block each improve the model, and their gains add up",
        "wrong at this size",
        f"in a decoder of two layers RoPE alone changes the loss by {rope:+.2f} nats, all six changes together by "
        f"{modern:+.2f}",
        said="lists of what is new in today's decoders",
    )


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    q, k = np.random.default_rng(6).standard_normal((2, 8))

    def turned(x, row, column):
        return run.turn(x[None], np.array([[row, row / 3, column, column / 3]]))[0]

    def score(patch, other):
        return turned(q, *patch) @ turned(k, *other)

    here, moved, apart = score((2, 5), (3, 1)), score((9, 25), (10, 21)), score((2, 5), (3, 2))
    lesson.check("two patches, both moved alike: the same score", abs(here - moved), 1e-13)
    lesson.check("... and otherwise another", abs(here - apart), at_least=1e-3)
