"""How much faster does your language model write with a smaller one as its draft?

Speculative decoding (`decoding/faster/speculative.py`) changes no probability, only the time, which follows from three
numbers that are measured alone: a = sum min(p, q), the share of guesses that are accepted; c, the cost of a guess; and
v(n), that of a pass over n tokens, both in units of one token of the large model. (Leviathan et al. take v as 1.)

    speed = (1 - a^(gamma + 1)) / (1 - a) / (v(gamma + 1) + gamma c)
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.paired import interval, plus_minus
from experiments.measuring.timing import seconds_of
from experiments.report import Figure, Options, Parser, Rows, Table, legend_below, listed
from minitransformer import GPT, Sampling
from minitransformer.decoding import SlidingState, generate_tokens, log_softmax
from minitransformer.decoding.faster.speculative import Speculation
from minitransformer.decoding.sampling import TEMPERATURE, TOP_P
from minitransformer.plotting import BLUE, GREY, ORANGE, SKY, pyplot
from minitransformer.recipes.saved import open_model
from minitransformer.system.progress import tqdm

SECONDS = {True: 60, False: 600}
GAMMAS = range(1, 7)
TEXTS = {True: 2, False: 10}
REPEATS = {True: 5, False: 60}  # of what is timed alone
GOAL = 1.5


def add_options(parser: Parser) -> None:
    """The two models."""
    parser.add_argument("--run", default="runs/shakespeare-large", metavar="RUN", help="a language model")
    about = "a smaller one, same tokenizer"
    parser.add_argument("--draft", default="runs/shakespeare-small", metavar="RUN", help=about)


def rows(options: Options) -> Rows:
    """The costs, and of each text sum min(p, q) and the speed with each gamma, in CPU time on one thread."""
    found: Any = [open_model(run, "shakespeare") for run in (options.run, options.draft)]
    (large, tokenizer), (small, other) = found
    both = isinstance(large, GPT) and isinstance(small, GPT) and tokenizer and other
    if not both or tokenizer.to_dict() != other.to_dict():
        raise ValueError(f"{options.run} and {options.draft} must be language models with the same tokenizer")
    texts, prompt = [], tokenizer.encode("\n")[None]
    passes = costs(large, small, REPEATS[options.quick])
    for seed in tqdm(range(TEXTS[options.quick]), leave=False, unit="text"):
        plain, _, ids = write(large, None, 0, prompt, seed)
        p, q = (sampling(0).probabilities(log_softmax(model(ids[:, :-1])[0])) for model in (large, small))
        texts.append({"gamma": 0, "a": float(np.minimum(p, q).sum(axis=1).mean())})
        for gamma in GAMMAS:
            seconds, counts, _ = write(large, small, gamma, prompt, seed)
            texts.append({"gamma": gamma, "speed": plain / seconds, **counts})
    return {"passes": passes, "texts": texts}


def sampling(seed: int) -> Sampling:
    """How `generate` draws."""
    return Sampling(np.random.default_rng(seed), TEMPERATURE, top_p=TOP_P)


def write(large: GPT, small: GPT | None, gamma: int, prompt: np.ndarray, seed: int) -> tuple[float, Any, np.ndarray]:
    """One text as long as the model's window -> CPU seconds, the counts of the draft, and its ids (1, T)."""
    start, used = time.process_time(), None if small is None else Speculation(SlidingState(small, 1), gamma)
    steps: Any = used.generate_tokens if used else generate_tokens
    new = steps(SlidingState(large, 1), prompt, large.config.max_len - prompt.shape[1], sampling(seed), eos=None)
    ids = np.append(prompt, [[int(token[0]) for token, _ in new]], axis=1)
    return time.process_time() - start, used.counts if used else {}, ids


def costs(large: GPT, small: GPT, repeats: int) -> list[dict[str, Any]]:
    """What a guess, passes over n tokens, and products of n rows with all matrices take; one token takes 1."""
    choose, states = sampling(0), [SlidingState(model, 1) for model in (large, small)]
    for state in states:
        state.extend(np.ones((1, state.window // 2), dtype=np.int64))

    def read(state: SlidingState, n: int) -> None:
        choose.probabilities(log_softmax(state.extend_last(np.ones((1, n), dtype=np.int64), n)[0]))
        state.cut_back(n)

    weights, counts = [each.data for each in large.parameters() if each.data.ndim == 2], range(1, GAMMAS[-1] + 2)

    def multiply(rows: list[np.ndarray]) -> None:
        for x, W in zip(rows, weights, strict=True):
            x @ W

    calls: dict[Any, Callable[[], Any]] = {("guess", 1): partial(read, states[1], 1)}
    for n in counts:
        calls["pass", n] = partial(read, states[0], n)
        for kind, shape in (("product", (n,)), ("row by row", (n, 1))):
            calls[kind, n] = partial(multiply, [np.ones((*shape, len(W)), W.dtype) for W in weights])
    times: dict[Any, list[float]] = {name: [] for name in calls}
    for kinds in (("guess", "pass"), ("product",), ("row by row",)):  # apart, so that the weights stay in the cache
        for name in [name for name in calls if name[0] in kinds] * repeats:
            times[name].append(seconds_of(calls[name], time.process_time))
    found = {name: statistics.median(each) for name, each in times.items()}
    unit = {"pass": found["pass", 1], "product": found["row by row", 1], "row by row": found["row by row", 1]}
    guess = found["guess", 1] / unit["pass"]
    return [{"n": n, "guess": guess, **{kind: found[kind, n] / one for kind, one in unit.items()}} for n in counts]


def summaries(rows: Rows) -> list[dict[str, Any]]:
    """For each gamma what was measured, and what the formula says."""
    a, guess = statistics.fmean(row["a"] for row in rows["texts"] if "a" in row), rows["passes"][0]["guess"]
    found = []
    for gamma in GAMMAS:
        texts = [row for row in rows["texts"] if row["gamma"] == gamma]
        accepted, judged, tokens, passes = (
            sum(row[name] for row in texts) for name in ("accepted", "judged", "tokens", "passes")
        )
        formula, cost = sum(a**i for i in range(gamma + 1)), gamma * guess
        row = {"gamma": gamma, "a": a, "accepted": accepted / max(1, judged), "tokens": tokens / passes}
        row |= {"formula": formula, "speeds": [text["speed"] for text in texts], "free": formula / (1 + cost)}
        found.append({**row, "predicted": formula / (rows["passes"][gamma]["pass"] + cost)})
    return found


def tables(rows: Rows) -> list[Table]:
    """The speeds, then the costs."""
    counted = {"accepted": "accepted", "tokens a pass": "tokens", "by the formula": "formula"}
    columns: dict[str, tuple] = {
        "gamma": ("gamma",),
        **{heading: (key, ".2f") for heading, key in counted.items()},
        "speed": (lambda row: plus_minus(row["speeds"]),),
        **{"predicted": ("predicted", ".2f"), "if v = 1": ("free", ".2f")},
    }
    costs = {"n": ("n",), **{kind: (kind, ".2f") for kind in ("pass", "product", "row by row")}}
    how = "cost, of one in the same way"
    return [listed("with a draft", summaries(rows), columns), listed(how, rows["passes"], costs)]


def findings(rows: Rows) -> list[str]:
    """Whether guesses are accepted as often as they should, whether the goal is reached, and what limits it."""
    found, last = summaries(rows), rows["passes"][-1]
    best, free = (max(found, key=lambda row: row[name]) for name in ("predicted", "free"))
    mean, half = interval(best["speeds"])
    verdict = "reached" if mean - half > GOAL else "not reached" if mean + half < GOAL else "undecided"
    return [
        f"Where sum min(p, q) is {best['a']:.2f}, {best['accepted']:.2f} of the guesses are accepted.",
        f"By the formula, gamma {best['gamma']} is best, {best['predicted']:.2f} times as fast as without a draft; "
        f"measured is {plus_minus(best['speeds'])} ({GOAL}: {verdict}).",
        f"A guess costs {last['guess']:.2f} of a token, and a pass over {last['n']} tokens {last['pass']:.2f}. With "
        f"all matrices, {last['n']} rows cost {last['product']:.2f} rows at once, {last['row by row']:.2f} row by row.",
        f"If a pass cost one token, gamma {free['gamma']} would be {free['free']:.2f} times as fast.",
    ]


def draw(rows: Rows) -> Figure:
    """Measured and predicted speed over gamma."""
    figure, axis = pyplot().subplots()
    found = summaries(rows)
    means, halves = zip(*(interval(row["speeds"]) for row in found), strict=True)
    axis.errorbar(GAMMAS, means, halves, fmt="o", color=BLUE, capsize=2, label="measured, 95 % interval")
    axis.plot(GAMMAS, [row["predicted"] for row in found], color=ORANGE, label="predicted")
    axis.plot(GAMMAS, [row["free"] for row in found], "--", color=SKY, label="if a pass cost one token (v = 1)")
    axis.axhline(1, color=GREY, linewidth=1, linestyle=":", label="without a draft")
    axis.set(title="Speculative decoding", xlabel="guesses before each pass (gamma)", xticks=GAMMAS)
    axis.set(ylabel="times as fast as without a draft")
    legend_below(figure, axis, ncols=2)
    return figure
