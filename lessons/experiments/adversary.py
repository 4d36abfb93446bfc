"""Can a model look elsewhere and say the same, and how much of its attention could move without any training?

Jain and Wallace (2019, "Attention is not Explanation") found other attention weights with the same answer, for one
example at a time. Wiegreffe and Pinter (2019, "Attention is not not Explanation") asked for more: an adversary is a
model, trained once, whose own queries and keys give the other weights on examples that it has never seen.

The adversary is a copy of a model that reverses words. Its loss is KL(answers of the model || its answers) plus
STRENGTH times the overlap of the two maps, sum_s a_ts b_ts for the means a and b over heads and layers of
cross-attention: its gradient with respect to a weight of the copy is a_ts, over the number of heads.

Without training, weights can move where the mixture of values stays: y = p v and sum p = 1 hold for all q = p + d >= 0
with d [v 1] = 0. A linear program finds the q with the least weight on the key that had the most.
"""

import copy
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.attention_kinds import options_of, train_as
from experiments.faithfulness import judge, sources_of
from experiments.measuring.paired import interval, judged, plus_minus, train_steps
from experiments.measuring.taps import judge_move, moved, tapped
from experiments.report import Figure, Options, Rows, Table, by_name, draw_map, grouped, listed
from minitransformer import Adam, Transformer, get_task, named_config, to_host
from minitransformer.evaluation import decode_and_score
from minitransformer.functional import softmax
from minitransformer.inspection import Rows as GivenRows
from minitransformer.inspection import intervene
from minitransformer.plotting import COLORS, pyplot
from minitransformer.recipes import get_recipe
from minitransformer.recipes.text import spread_windows
from minitransformer.system.progress import tqdm
from minitransformer.training import clip_grad_norm

SECONDS = {True: 25, False: 600}
SEEDS = {True: 1, False: 3}
STEPS = {True: 150, False: 1500}  # of the model
FOOLED = {True: 60, False: 1000}  # steps of the adversary
BATCH, PEAK, FOOLED_PEAK, STRENGTH = 32, 3e-3, 2e-3, 3.0
HEADS = 8  # of 8 features, fewer than a word of 12 letters has keys
TESTED = {True: 50, False: 400}  # words
JUDGED = {True: 2, False: 10}  # words whose tokens are replaced
MOVED = {True: 1, False: 3}  # words, or windows of the text, whose weights are moved
LAST = 8  # queries of a window
TEXT: dict[str, Any] = {"tokenizer": "characters", "d_model": 64, "num_layers": 2, "length": 64, "batch_size": 16}
TEXT_STEPS = {True: 20, False: 200}
WHO = ("model", "adversary")
SCORES = ("attention", "rollout", "gradient x input", "integrated gradients")


def look(model: Any, batch: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The answers' distributions (B, T, V), the map (B, T, S), and the maps of all heads (heads, B, T, S)."""
    with tapped(model, "cross_attention") as taps:
        p = softmax(model(*batch.inputs))[0]
        heads = np.concatenate([to_host(tap.weights).swapaxes(0, 1) for tap in taps.values()])
    return to_host(p), heads.mean(axis=0), heads


def fool(model: Any, data: Any, steps: int, seed: int) -> Any:
    """Train the adversary of a model -> a model."""
    adversary, rng = copy.deepcopy(model), np.random.default_rng([seed, 13])
    optimizer = Adam(adversary.parameters())
    with tapped(adversary, "cross_attention") as taps:
        for step in range(1, steps + 1):
            batch = data.batch(rng, BATCH)
            answers, seen, heads = look(model, batch)
            counted = model.config.tokens(batch.targets)
            share = counted[..., None] / counted.sum()
            for tap in taps.values():
                tap.pull = (STRENGTH * share * seen)[:, None] / len(heads)
            logits, cache = adversary.forward(*batch.inputs)
            optimizer.zero_grad()
            adversary.backward(((softmax(logits)[0] - answers) * share).astype(logits.dtype), cache)
            clip_grad_norm(optimizer.parameters, 1.0)
            optimizer.lr = FOOLED_PEAK * min(1.0, step / 20, 2 * (1 - (step - 1) / steps))
            optimizer.step()
    return adversary


def compare(model: Any, other: Any, batch: Any) -> dict[str, float]:
    """How far the answers and the maps of two models are apart, in the mean over the tokens of the answers."""
    (p, a, a_heads), (q, b, b_heads) = look(model, batch), look(other, batch)
    counted = model.config.tokens(batch.targets)
    first = a.argmax(axis=-1)
    same_heads = (a_heads.argmax(axis=-1) == b_heads.argmax(axis=-1))[:, counted]
    return {
        "exact": decode_and_score(other, batch)[1],
        "distance": float(0.5 * abs(p - q).sum(axis=-1)[counted].mean()),
        "same first": float((first == b.argmax(axis=-1))[counted].mean()),
        "same first, heads": float(same_heads.mean()),
        "maps": float(0.5 * abs(a - b).sum(axis=-1)[counted].mean()),
        "weight on it": float(np.take_along_axis(b, first[..., None], axis=-1)[..., 0][counted].mean()),
    }


def move(model: Any, inputs: Sequence[np.ndarray], last: int, about: dict[str, Any]) -> tuple[list, dict[str, Any]]:
    """Move the weights of the `last` queries in all heads at once -> a row for each head, and what the logits did."""
    exact, found, changes = type(model)(model.config, dtype=np.float64), [], []
    for mine, given in zip(exact.parameters(), model.parameters(), strict=True):
        mine.data[...] = given.data
    with tapped(exact) as taps:
        before = exact(*inputs)
    for path, tap in taps.items():
        q, (_, heads, T, _) = tap.weights.copy(), tap.weights.shape
        for h in range(heads):
            pairs = []
            for b in range(len(q)):
                for t in range(max(0, T - last), T):
                    p = tap.weights[b, h, t]
                    q[b, h, t] = moved(p, tap.values[b, h])
                    pairs.append(judge_move(p, q[b, h, t], tap.values[b, h]))
            means = {name: float(np.mean([pair[name] for pair in pairs])) for name in pairs[0]}
            found.append({**about, "attention": role(path), "path": path, "head": h, **means})
        changes.append(GivenRows(path, q, np.arange(T) >= T - last))
    with intervene(exact, *changes):
        change = float(abs(exact(*inputs) - before).max())
    return found, {**about, "change": change, "size": float(abs(before).max())}


def role(path: str) -> str:
    """Such as "decoder, cross"."""
    stack, _, name = path.partition(".")
    return "text" if stack == "blocks" else f"{stack}, {'cross' if 'cross' in name else 'self'}"


def rows(options: Options) -> Rows:
    """The adversary of every seed, what the maps say before and after, and how much weight could move."""
    quick, data, models = options.quick, get_task("reverse"), []
    test = data.held_out_batch(np.random.default_rng(1), TESTED[quick])
    found: Rows = {"adversaries": [], "heads": [], "moves": [], "examples": []}
    for seed in tqdm(options.seeds, unit="seed"):
        model = Transformer(named_config("tiny", len(data.vocabulary), num_heads=HEADS, dropout=0.0), seed=seed)
        trained, start = train_steps(model, data, STEPS[quick], seed, PEAK), time.process_time()
        models.append((model, fool(model, data, FOOLED[quick], seed)))
        times = {"seconds": trained["seconds"], "seconds to fool": time.process_time() - start}
        whole = compare(model, model, test)["exact"]
        row = {"seed": seed, **times, "whole": whole, **compare(*models[-1], test)}
        found["adversaries"].append({**row, **faithful(data, models[-1], quick)})
        words = sources_batch(data, MOVED[quick])
        words_moved = [(*each, words.inputs, data.max_len + 1) for each in zip(WHO, models[-1], strict=True)]
        for name, one, inputs, last in (*words_moved, ("GPT", *text_model(seed, quick), LAST)):
            each, change = move(one, inputs, last, {"model": name, "seed": seed})
            found["heads"] += each
            found["moves"].append(change)
    for row, (model, _), (other, _) in zip(found["adversaries"], models, models[1:] + models[:1], strict=True):
        row["another seed"] = compare(model, other, test)["same first"]
    found["examples"] = [example(data, name, model) for name, model in zip(WHO, models[0], strict=True)]
    return found


def sources_batch(data: Any, count: int) -> Any:
    """Words of 12 letters, without padding."""
    return data.batch(np.random.default_rng(2), count, held_out=True, min_len=data.max_len)


def faithful(data: Any, pair: tuple[Any, Any], quick: bool) -> dict[str, Any]:
    """{"before", "after": {score: its rank correlation with the effect of replacing a token}}."""
    words = sources_of(data, 0, np.random.default_rng(3), JUDGED[quick])
    ranks = [judge(model, data, words)["rank"] for model in pair]
    return {when: {name: rank[name] for name in SCORES} for when, rank in zip(("before", "after"), ranks, strict=True)}


def text_model(seed: int, quick: bool) -> tuple[Any, list[np.ndarray]]:
    """A GPT that has learned a little of a text, and windows of it."""
    how = options_of("text", seed, {**TEXT, "steps": TEXT_STEPS[quick]})
    data = get_recipe("text").data(how)
    model, _ = train_as("text", how, data)
    return model, [spread_windows(data).ids[: MOVED[quick]]]


def example(data: Any, name: str, model: Any) -> dict[str, Any]:
    """The map of one word, and the answer."""
    batch = sources_batch(data, 1)
    p, seen, _ = look(model, batch)
    letters = [[data.vocabulary[i].strip("<>") for i in ids] for ids in (batch.source[0], p[0].argmax(axis=-1))]
    return {"model": name, "weights": seen[0].tolist(), "source": letters[0], "answer": letters[1]}


def tables(rows: Rows) -> list[Table]:
    """The adversary of each seed; the scores before and after; and how much weight could move."""
    times = {"seed": ("seed",), "CPU s": ("seconds", ".0f"), "to fool": ("seconds to fool", ".0f")}
    shares = {
        **{"exact": "whole", "exact, adversary": "exact", "answers apart": "distance", "maps apart": "maps"},
        **{"same largest weight": "same first", "in a head": "same first, heads", "another seed": "another seed"},
    }
    ranks, movable = [], []
    for score in SCORES:
        both = (plus_minus([row[when][score] for row in rows["adversaries"]]) for when in ("before", "after"))
        ranks.append([score, *both, plus_minus(falls(rows, score))])
    for about, found in grouped(rows["heads"], "model", "attention").items():
        means = (f"{np.mean([row[key] for row in found]):.2f}" for key in ("directions", "largest", "left"))
        most = max(row["moved"] for row in found)
        movable.append([*about, *means, plus_minus(by_seed(found, "moved")), f"{most:.2f}"])
    heading = ["of", "attention", "directions", "largest weight", "least it can be", "can move", "in one head"]
    return [
        listed("adversaries", rows["adversaries"], times | {name: (key, ".3f") for name, key in shares.items()}),
        Table("rank correlation with the effect", ["score", "model", "adversary", "fall"], ranks),
        Table("weight that can move without training", heading, movable),
    ]


def by_seed(found: list[dict[str, Any]], key: str) -> list[float]:
    """The mean over the heads of each seed."""
    return [float(np.mean([row[key] for row in group])) for group in grouped(found, "seed").values()]


def falls(rows: Rows, score: str) -> list[float]:
    """By how much a score's rank correlation with the effect is lower for the adversary, seed by seed."""
    return [row["before"][score] - row["after"][score] for row in rows["adversaries"]]


def findings(rows: Rows) -> list[str]:
    """Whether there is an adversary, what it does to the maps' agreement with the effect, and what can move."""
    found = rows["adversaries"]
    reached = sum(row["exact"] >= 0.99 and row["same first"] <= 0.05 for row in found)
    same, others = ([row[key] for row in found] for key in ("same first", "another seed"))
    confirmed = "which confirms" if reached == len(found) > 1 else "which does not confirm"
    lines = [
        f"{reached} of {len(found)} adversaries keep 99 % of the answers, exact on words that none has seen, with the "
        f"same largest weight in at most 5 % of the rows: {confirmed} Jain and Wallace by the stricter test of "
        "Wiegreffe and Pinter, one adversary for all examples.",
        f"Exact: {plus_minus([row['exact'] for row in found], '.3f')}; the same largest weight: "
        f"{plus_minus(same, '.3f')} of the rows, and {plus_minus(others, '.3f')} for a model of another seed.",
    ]
    for score in ("attention", "gradient x input"):
        word = judged(*interval(falls(rows, score)), "rises", "falls", "does not measurably change")
        lines.append(f"The rank correlation of {score} with the effect {word}: {plus_minus(falls(rows, score))} lower.")
    mean, half = interval(np.subtract(falls(rows, "attention"), falls(rows, "gradient x input")).tolist())
    word = judged(mean, half, "less", "more", "not measurably more or less")
    lines.append(f"That of attention falls {word} than that of gradient x input ({mean:+.2f} ± {half:.2f}).")
    for name, heads in by_name(rows["heads"], "model").items():
        change = max(row["change"] / row["size"] for row in rows["moves"] if row["model"] == name)
        lines.append(
            f"{name}: {plus_minus(by_seed(heads, 'moved'))} of the weight can move without training, at most "
            f"{max(row['moved'] for row in heads):.2f} in one head; with all heads moved at once, the logits change by "
            f"{change:.0e} of the largest."
        )
    return lines


def draw(rows: Rows) -> Figure:
    """One word's map before and after, and what can move in every head."""
    figure, axes = pyplot().subplots(1, 3, figsize=(12.5, 4.2), width_ratios=(1, 1, 1.3))
    most = max(np.max(shown["weights"]) for shown in rows["examples"])
    for axis, shown in zip(axes, rows["examples"], strict=False):
        image = draw_map(axis, shown["weights"], shown["source"], shown["answer"], most)
        axis.set_title(f"cross-attention of the {shown['model']}")
        axis.set(xlabel="letter of the word", ylabel="letter that it writes")
    figure.colorbar(image, ax=axes[:2].tolist(), label="weight, mean of heads and layers")
    names = list(dict.fromkeys(row["attention"] for row in rows["heads"]))
    for i, (model, found) in enumerate(grouped(rows["heads"], "model").items()):
        apart = 0.0 if model == "GPT" else 0.2 * (i - 0.5)
        x = [names.index(row["attention"]) + apart for row in found]
        axes[2].plot(x, [row["moved"] for row in found], ".", color=COLORS[i], label=model)
    axes[2].set_xticks(range(len(names)), [name.replace(", ", "\n") for name in names])
    axes[2].set(title="weight that can move and change nothing", xlabel="attention; a dot is a head of a seed")
    axes[2].set(ylabel="share of the weight, mean over rows", ylim=(-0.03, None))
    axes[2].legend()
    return figure
