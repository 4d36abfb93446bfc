"""Do attention maps say which tokens an answer depends on, and from how much redundant evidence on do they not?

Each token of a source is replaced by others of its kind, and the effect is how far the distribution of the answer's
next token moves (total variation). Scores rank the same tokens: attention (the mean over heads and layers of
cross-attention), rollout (Abnar and Zuidema 2020), |gradient x input|, |integrated gradients| (Sundararajan et al.
2017), and |p dp|, the exact first-order effect on log p(answer) of each weight of cross-attention. Jain and Wallace
(2019, "Attention is not Explanation") found little agreement, in recurrent classifiers of texts.

In "reverse" one token decides each answer, and cross-attention is the only road to it. In "vote" the answer is the
digit that is most frequent among letters: the more copies of it there are, the less each of them matters.
"""

import itertools
from typing import Any

import numpy as np

from experiments.measuring.paired import interval, judged, plus_minus, train_steps
from experiments.measuring.ranks import spearman
from experiments.report import Figure, Options, Rows, Table, grouped, legend_below
from minitransformer import Transformer, get_task, named_config, to_host
from minitransformer.data.tasks import ToyTask
from minitransformer.functional import softmax
from minitransformer.inspection import Change, intervene
from minitransformer.inspection import Rows as GivenRows
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.progress import tqdm
from minitransformer.vocabulary import BOS, EOS, SPECIAL_TOKENS

SECONDS = {True: 40, False: 600}
SEEDS = {True: 2, False: 5}
STEPS = {"reverse": {True: 150, False: 1500}, "vote": {True: 60, False: 500}}
TESTED = {"reverse": {True: 4, False: 20}, "vote": {True: 20, False: 100}}  # sources
COPIES = {True: (1, 4), False: (1, 2, 3, 4, 6)}
PEAK = 3e-3
REPLACED = 4  # other tokens in the place of each
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the path of integrated gradients
AGAIN = "effect again"  # of other replacements: the agreement that a perfect score could reach
SCORES = (AGAIN, "attention", "rollout", "p dp", "gradient x input", "integrated gradients")


class Vote(ToyTask):
    """Letters, and digits among them, of which one is more frequent than any other: the answer is that digit."""

    letters, digits = "abcdefgh", "01234567"
    symbols = digits + letters
    max_len = 12

    def draw(self, rng: np.random.Generator, count: int, min_len: int) -> np.ndarray:
        """`count` sources of 12 tokens: 1 to 6 copies of a digit, and fewer of another one, none in half of them."""
        copies = rng.integers(1, 7, (count, 1))
        others = rng.integers(0, copies) * rng.integers(0, 2, (count, 1))
        return self.mixed(rng, copies, others)

    def mixed(self, rng: np.random.Generator, copies: np.ndarray, others: Any = 0) -> np.ndarray:
        """Sources with `copies` (count, 1) of one digit and `others` of another, in random places."""
        place, first = np.arange(self.max_len), len(SPECIAL_TOKENS)
        digit = rng.integers(0, 8, copies.shape)
        other = (digit + rng.integers(1, 8, copies.shape)) % 8
        letters = rng.integers(8, 16, (len(copies), self.max_len))
        rows = np.where(place < copies, digit, np.where(place < copies + others, other, letters))
        return rng.permuted(first + rows, axis=1)

    def solve(self, source: np.ndarray) -> np.ndarray:
        """The most frequent digit of each source."""
        first = len(SPECIAL_TOKENS)
        counts = (source[:, :, None] == first + np.arange(8)).sum(axis=1)
        return first + counts.argmax(axis=1)[:, None]


TASKS: dict[str, Any] = {"reverse": lambda: get_task("reverse"), "vote": Vote}


def rows(options: Options) -> Rows:
    """Train a model of each task and seed -> a row for each number of copies, and one for reverse."""
    found = []
    for task, seed in tqdm([*itertools.product(TASKS, options.seeds)], unit="model"):
        data, steps = TASKS[task](), STEPS[task][options.quick]
        model = Transformer(named_config("tiny", len(data.vocabulary), dropout=0.0), seed=seed)
        train_steps(model, data, steps, seed, PEAK)
        rng = np.random.default_rng([options.seed, 11])
        for copies in COPIES[options.quick] if task == "vote" else (0,):
            sources = sources_of(data, copies, rng, TESTED[task][options.quick])
            found.append({"task": task, "seed": options.seed + seed, "copies": copies, **judge(model, data, sources)})
    return {"models": found}


def sources_of(data: ToyTask, copies: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Sources (count, 12) to be judged, without eos."""
    if isinstance(data, Vote):
        return data.mixed(rng, np.full((count, 1), copies))
    return data.batch(rng, count, held_out=True, min_len=data.max_len).source[:, :-1]


def judge(model: Any, data: ToyTask, sources: np.ndarray) -> dict[str, Any]:
    """The mean agreement of every score with the effect: "rank" correlation, "first" place; and the "effect"'s size."""
    rng, kept = np.random.default_rng(0), len(sources[0])
    found: dict[str, list[tuple[float, float]]] = {score: [] for score in SCORES}
    largest, right = [], []
    for source in sources:
        answer = data.solve(source[None])[0]
        effect, probability = replaced(model, data, source, answer, rng)
        maps = {AGAIN: replaced(model, data, source, answer, rng)[0], **scores(model, source, answer)}
        largest.append(effect.max(axis=1).mean())
        right.append((probability > 0.5).mean())
        for score in SCORES:
            for t, row in enumerate(maps[score][:, :kept]):
                found[score].append((spearman(row, effect[t]), row.argmax() == effect[t].argmax()))
    means = {score: np.nanmean(np.array(pairs, float), axis=0).tolist() for score, pairs in found.items()}
    return {
        **{"effect": float(np.mean(largest)), "right": float(np.mean(right))},
        "rank": {score: mean[0] for score, mean in means.items()},
        "first": {score: mean[1] for score, mean in means.items()},
    }


def inputs_of(source: np.ndarray, answer: np.ndarray, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """The model's inputs (copies, S + 1) and (copies, T), for the source's tokens with eos and the answer without."""
    source, target = np.append(source, EOS), np.insert(answer[:-1], 0, BOS)
    return np.tile(source, (copies, 1)), np.tile(target, (copies, 1))


def probabilities(model: Any, *inputs: np.ndarray) -> np.ndarray:
    """The distributions (B, T, V) of the next tokens."""
    return to_host(softmax(model(*inputs))[0]).astype(float)


def replaced(
    model: Any, data: ToyTask, source: np.ndarray, answer: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The effect (T, S) of replacing each token of the source by others of its kind; and the answer's probabilities.

    The effect is the total variation between the distributions before and after, the mean of REPLACED replacements.
    """
    sources, targets = inputs_of(source, answer, 1 + len(source) * REPLACED)
    for number, place in enumerate(np.repeat(np.arange(len(source)), REPLACED), start=1):
        others = [id for id in kind_of(data, source[place]) if id != source[place]]
        sources[number, place] = rng.choice(others)
    p = probabilities(model, sources, targets)
    distance = 0.5 * abs(p[1:] - p[0]).sum(axis=-1)  # (S * REPLACED, T)
    effect = distance.reshape(len(source), REPLACED, -1).mean(axis=1).T
    return effect, p[0, np.arange(len(answer)), answer]


def kind_of(data: ToyTask, token: int) -> range:
    """The ids of the digits if the token is one, else those of the letters; without digits, all symbols."""
    first, end = len(SPECIAL_TOKENS), len(data.vocabulary)
    digits = first + len(getattr(data, "digits", ""))
    return range(first, digits) if token < digits else range(digits, end)


def scores(model: Any, source: np.ndarray, answer: np.ndarray) -> dict[str, np.ndarray]:
    """{score: (T, S + 1)} for each next token of the answer and each token of the source, eos included."""
    inputs = inputs_of(source, answer, len(answer))  # row t is differentiated for answer t
    found = model.attention_weights(*(ids[:1] for ids in inputs))
    cross = np.mean([to_host(weights)[0].mean(axis=0) for weights in found.cross], axis=0)
    moved = np.eye(inputs[0].shape[1])
    for weights in found.encoder:
        moved = (0.5 * to_host(weights)[0].mean(axis=0) + 0.5 * np.eye(len(moved))) @ moved
    x, gradient = input_gradients(model, inputs, answer, 1.0)
    path = np.mean([input_gradients(model, inputs, answer, alpha)[1] for alpha in ALPHAS], axis=0)
    return {
        "attention": cross,
        "rollout": cross @ moved,
        "p dp": abs(first_order(model, inputs, answer)),
        "gradient x input": abs((x * gradient).sum(axis=-1)),
        "integrated gradients": abs((x * path).sum(axis=-1)),
    }


def push(model: Any, inputs: tuple[np.ndarray, ...], answer: np.ndarray) -> None:
    """Backward from log p(answer t) of row t, for each t."""
    logits, cache = model.forward(*inputs)
    t = np.arange(len(answer))
    dlogits = np.zeros(logits.shape, logits.dtype)
    dlogits[t, t] = -probabilities(model, *inputs)[t, t]
    dlogits[t, t, answer] += 1.0
    model.backward(dlogits, cache)


def input_gradients(
    model: Any, inputs: tuple[np.ndarray, ...], answer: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors x (T, S + 1, C) of the source's tokens, and dlog p(answer)/dx where they are alpha x."""
    seen: list[np.ndarray] = []
    zero = np.zeros((*inputs[0].shape, model.config.d_model))
    with intervene(model, Change("source_embedding", alpha, zero, watch=seen.append)) as (altered,):
        push(model, inputs, answer)
        return seen[0], altered.value.grad


def first_order(model: Any, inputs: tuple[np.ndarray, ...], answer: np.ndarray) -> np.ndarray:
    """The sum over heads and layers of p dlog p(answer)/dp (T, S + 1), for the weights p of cross-attention."""
    found = model.attention_weights(*inputs).cross
    places = [f"decoder.layers.{i}.cross_attention.sublayer" for i in range(len(found))]
    with intervene(model, *map(GivenRows, places, found)) as altered:
        push(model, inputs, answer)
        # those of earlier queries, too: what they find reaches query t through self-attention
        return sum((one.weights.data * one.weights.grad).sum(axis=(1, 2)) for one in altered)


def title(task: str, copies: int) -> str:
    """Such as "vote, 3 copies"."""
    return f"{task}, {copies} {'copy' if copies == 1 else 'copies'}" if copies else task


def tables(rows: Rows) -> list[Table]:
    """Rank correlation and agreement of the first place."""
    found: list[Table] = []
    for name, what in (("rank correlation", "rank"), ("same first place", "first")):
        cells = []
        for kind, models in grouped(rows["models"], "task", "copies").items():
            means = (f"{np.mean([row[key] for row in models]):.2f}" for key in ("right", "effect"))
            scores = (plus_minus([row[what][score] for row in models]) for score in SCORES)
            cells.append([title(*kind), *means, *scores])
        found.append(Table(name, ["evidence", "right", "largest effect", *SCORES], cells))
    return found


def findings(rows: Rows) -> list[str]:
    """Whether attention beats the gradient where there is one road, and where redundancy ends its agreement."""
    lines, border = [], "at no number of copies tried"
    for kind, found in grouped(rows["models"], "task", "copies").items():
        first, again = ([row["first"][score] for row in found] for score in ("attention", AGAIN))
        others = " and ".join(f"{compared(found, score)} {score}" for score in ("gradient x input", "rollout"))
        lines.append(
            f"{title(*kind)}: attention's rank correlation with the effect is "
            f"{plus_minus([row['rank']['attention'] for row in found])}, {others}; it names the most important token "
            f"in {np.mean(first):.0%} of the answers, the effect of other replacements in {np.mean(again):.0%}."
        )
        mean, half = interval(np.subtract(again, first).tolist())
        if kind[1] and mean > half and border.startswith("at"):
            border = f"first with {title(*kind)} ({mean:+.2f} ± {half:.2f})"
    lines.append(f"Attention measurably names that token less often than the effect of other replacements: {border}.")
    return lines


def compared(found: list[dict[str, Any]], score: str) -> str:
    """How attention's rank correlation compares with that of another score, where the interval excludes 0."""
    mean, half = interval([row["rank"]["attention"] - row["rank"][score] for row in found])
    word = judged(mean, half, "below", "above", "not measurably apart from")
    return f"{word} ({mean:+.2f} ± {half:.2f})"


def draw(rows: Rows) -> Figure:
    """Both agreements of every score over the number of copies; reverse stands at the left."""
    figure, axes = pyplot().subplots(1, 2, figsize=(9.6, 3.8))
    groups = grouped(rows["models"], "task", "copies")
    for axis, (what, name) in zip(axes, (("rank", "rank correlation"), ("first", "same first token")), strict=True):
        for color, score in zip(COLORS, SCORES, strict=False):
            points = [interval([row[what][score] for row in found])[0] for found in groups.values()]
            label = "the effect itself, other replacements" if score == AGAIN else score
            axis.plot(range(1, len(points)), points[1:], "o-", color=color, markersize=4, label=label)
            axis.plot([0], points[:1], "s", color=color, markersize=6)
        axis.axhline(0, color=GREY, linewidth=1)
        axis.set_xticks(range(len(groups)), [title(*kind).replace(", ", "\n") for kind in groups])
        axis.set(xlabel="task and copies of the deciding digit", ylabel=f"{name} of score and effect")
        axis.set_ylim(top=1.05)
    legend_below(figure, axes[0], ncols=3)
    return figure
