"""Do two heads in a row continue what a text has said before, and what happens without them?

An induction head (Elhage et al. 2021, Olsson et al. 2022) finds where the present token stood before, and copies what
came after it. It needs a head of the layer before, which tells each token what precedes it. GPTs of two layers, and of
one as a control, learn rows of random tokens that repeat with a period of 12 to 24. What a head does is read off its
attention; then each head is removed. At last the two heads are set by hand: weights that nobody trained.
"""

import time
from typing import Any

import numpy as np

from experiments.measuring.paired import compared, plus_minus
from experiments.measuring.steps import make_training_step
from experiments.report import Figure, Options, Rows, Table
from minitransformer import GPT, gpt_config, mean_loss
from minitransformer.data.text import TextBatch
from minitransformer.inspection.interventions import heads, intervene
from minitransformer.plotting import COLORS, pyplot

SECONDS = {True: 25, False: 240}
SEEDS, STEPS = {True: 1, False: 5}, {True: 900, False: 1500}
V, T, PERIODS = 65, 48, (12, 24)  # the tokens are 1 to 64
BATCH, TESTED, PEAK, EVERY, SHOWN = 16, 128, 5e-3, 50, 30
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 64, "max_len": T, "dropout": 0.0}
SHARP = 100.0  # scores by hand: all tokens that are not meant get weights of e^-100
ROLES = {  # {name: (layer, the token that such a head attends to)}
    "own": (0, "the token itself"),
    "previous": (0, "the token before it"),
    "induction": (1, "tokens after its copies"),
}
PARTS = ("repeated part", "first period")  # of a row


def draw_rows(rng: np.random.Generator, count: int, distinct: bool = False) -> tuple[TextBatch, np.ndarray]:
    """Rows, each with its own period -> (rows, where the present token stood one period before (count, T)).

    In `distinct` rows no token stands twice in a period.
    """
    periods = rng.integers(PERIODS[0], PERIODS[1] + 1, count)
    tokens = rng.integers(1, V, (count, V - 1))
    if distinct:
        tokens = rng.permuted(np.tile(np.arange(1, V), (count, 1)), axis=1)
    ids = np.take_along_axis(tokens, np.arange(T + 1) % periods[:, None], axis=1)
    return TextBatch(ids[:, :-1], ids[:, 1:]), np.arange(T) >= periods[:, None]


def loss_and_accuracy(model: GPT, rows: TextBatch, again: np.ndarray) -> list[float]:
    """The loss in nats and the share of right tokens, in the part that repeats."""
    right = model(rows.ids).argmax(axis=-1) == rows.targets
    return [mean_loss(model, [TextBatch(rows.ids, np.where(again, rows.targets, 0))]), float(right[again].mean())]


def scores(model: GPT, rows: TextBatch, again: np.ndarray) -> dict[str, list[float]]:
    """For each role the mean weight that each head of its layer has on such tokens, in the part that repeats."""
    before = np.pad(rows.ids[:, :-1], ((0, 0), (1, 0)))  # what precedes each token
    keys = {
        "own": np.eye(T, dtype=bool)[None],
        "previous": np.eye(T, k=-1, dtype=bool)[None],
        "induction": before[:, None] == rows.ids[:, :, None],
    }
    weights = model.attention_weights(rows.ids)
    return {
        role: (weights[layer] * keys[role][:, None]).sum(axis=3).swapaxes(0, 1)[:, again].mean(axis=1).tolist()
        for role, (layer, _) in ROLES.items()
        if layer < len(weights)
    }


def train(layers: int, seed: int, steps: int) -> tuple[GPT, dict[str, Any]]:
    """A trained model; and its losses and the best scores on the way."""
    model = GPT(gpt_config(V, num_layers=layers, positions="rope", **SIZES), seed=seed)
    rng, tested = np.random.default_rng([seed, 13]), draw_rows(np.random.default_rng([seed, 14]), TESTED)
    make_step = make_training_step(model, 0.0, threads=1)
    row: dict[str, Any] = {"steps": [], "losses": [], "scores": []}
    start = time.process_time()
    for step in range(1, steps + 1):
        make_step(draw_rows(rng, BATCH)[0], PEAK * min(1.0, step / 50, 5 * (1 - (step - 1) / steps)))
        if step % EVERY == 0:
            row["steps"].append(step)
            row["losses"].append(loss_and_accuracy(model, *tested)[0])
            row["scores"].append([max(each) for each in scores(model, *tested).values()])
    return model, {**row, "seconds": time.process_time() - start}


def rows(options: Options) -> Rows:
    """For each seed two layers, one layer, and the effect of every head; and the model set by hand."""
    found: list[dict[str, Any]] = []
    example: list[dict[str, Any]] = []
    for seed in options.seeds:
        model, row = train(2, seed, STEPS[options.quick])
        control = train(1, seed, STEPS[options.quick])[1]["losses"]
        tested = draw_rows(np.random.default_rng([seed, 15]), TESTED)
        found.append({"seed": seed, **row, "control": control, **remove_each_head(model, *tested)})
        example = example or [picture(model, found[0]["heads"], *tested)]
        print(f"seed {seed}: two layers in {row['seconds']:.0f} s", flush=True)
    by_hand = []
    for kind in (True, False):
        measured = loss_and_accuracy(set_by_hand(), *draw_rows(np.random.default_rng(0), TESTED, kind))
        by_hand.append({"distinct": kind, "measured": measured})
    return {"seeds": found, "by hand": by_hand, "example": example}


def remove_each_head(model: GPT, rows: TextBatch, again: np.ndarray) -> dict[str, Any]:
    """The best head of each role; the loss, and that head's induction score, without each of them or another head."""
    found, count = scores(model, rows, again), SIZES["num_heads"]
    best = {role: layer * count + int(np.argmax(found[role])) for role, (layer, _) in ROLES.items()}
    loss, accuracy = loss_and_accuracy(model, rows, again)
    final = {role: max(each) for role, each in found.items()}
    row: dict[str, Any] = {"heads": best, "final": final, "loss": loss, "accuracy": accuracy}

    def measure(change: Any) -> list[float]:
        with intervene(model, change):
            score = scores(model, rows, again)["induction"][best["induction"] - count]
            return [loss_and_accuracy(model, rows, again)[0], score]

    measured = [measure(head) for head in heads(model)]
    chosen = {role: [i] for role, i in best.items()}
    for layer in range(2):
        others = range(layer * count, (layer + 1) * count)
        chosen[f"other, layer {layer + 1}"] = [i for i in others if i not in best.values()]
    for i, name in enumerate(("without", "induction without")):
        row[name] = {who: float(np.mean([measured[j][i] for j in places])) for who, places in chosen.items()}
    # the tokens that ask stand in the part that repeats, and most of those that are found in the first period
    row["side"] = {
        f"{role}, {part}": measure(heads(model)[best[role]]._replace(scale=kept[..., None]))
        for role in ("own", "previous")
        for part, kept in zip(PARTS, (~again, again), strict=True)
    }
    return row


def picture(model: GPT, best: dict[str, int], rows: TextBatch, again: np.ndarray) -> dict[str, Any]:
    """The weights of the previous-token head and the induction head on the row with the shortest period."""
    n = int(again.sum(axis=1).argmax())
    weights = np.concatenate([each[0] for each in model.attention_weights(rows.ids[n : n + 1])])  # (heads, T, T)
    shown = weights[:, :SHOWN, :SHOWN].astype(float).round(3)
    pair = {role: shown[best[role]].tolist() for role in ("previous", "induction")}
    return {"period": int(T - again[n].sum()), **pair}


def set_by_hand() -> GPT:
    """A GPT whose two heads are written down. The features of a token are four blocks:

        itself (V)      its position (T)      what precedes it (V)      what comes next (V)

    Head 1   asks for the position before its own, and copies that token into "what precedes it"
    Head 2   asks for a token that its own token precedes, and copies it into "what comes next"

    Features with k ones have the mean m = k / C and the variance m - m^2, so gamma and beta can undo LayerNorm. The
    first token, which sees itself alone, is taken for its own predecessor: head 2 must not find it.
    """
    C = 3 * V + T
    token, place, before, after = (slice(i, i + size) for i, size in ((0, V), (V, T), (V + T, V), (V + T + V, V)))
    config = gpt_config(V, d_model=C, num_heads=1, d_ff=1, num_layers=2, max_len=T, dropout=0.0, tie_embeddings=False)
    model = GPT(config, seed=None)
    weights = {name: parameter.data for name, parameter in model.named_parameters()}
    weights["embedding.tokens.E"][:, token] = np.eye(V)
    weights["embedding.positions.P"][:, place] = np.eye(T)
    for layer, ones in enumerate((2, 3)):
        path, mean = f"blocks.layers.{layer}.self_attention.", ones / C
        weights[f"{path}norm.gamma"][:] = (mean - mean**2 + config.norm_eps) ** 0.5
        weights[f"{path}norm.beta"][:] = mean
        query, key, value = np.split(weights[f"{path}sublayer.qkv.W"], 3, axis=1)  # views
        if layer == 0:
            query[place, :T], key[place, :T] = np.eye(T, k=-1), SHARP * C**0.5 * np.eye(T)
        else:
            query[token, :V], key[before, :V] = np.eye(V), SHARP * C**0.5 * np.eye(V)
            key[place.start, :V] = -SHARP * C**0.5
        value[token, :V] = np.eye(V)
        weights[f"{path}sublayer.output.W"][:V, after if layer else before] = np.eye(V)
    weights["output.E"][:, after] = SHARP * np.eye(V)
    return model


def tables(rows: Rows) -> list[Table]:
    """What each seed learns, and what is left without a head."""
    learned = ["seed", "CPU s", "loss, one layer", "loss, two layers", *(f"best {role} score" for role in ROLES)]
    names = [*rows["seeds"][0]["without"]]
    parts = [*rows["seeds"][0]["side"]]
    cells, losses, sides = [], [], []
    for row in rows["seeds"]:
        sides.append([str(row["seed"]), *("{:.2f} ({:.2f})".format(*row["side"][part]) for part in parts)])
        final = [f"{row['final'][role]:.2f}" for role in ROLES]
        both = [f"{row['control'][-1]:.2f}", f"{row['loss']:.2f}"]
        cells.append([str(row["seed"]), f"{row['seconds']:.0f}", *both, *final])
        left = [f"{row['without'][name]:.2f} ({row['induction without'][name]:.2f})" for name in names]
        losses.append([str(row["seed"]), f"{row['loss']:.2f} ({row['final']['induction']:.2f})", *left])
    title = "loss (and induction score) without a head"
    return [
        Table("learned", learned, cells),
        Table(title, ["seed", "none", *names], losses),
        Table(f"{title} in a part of the row", ["seed", *parts], sides),
    ]


def findings(rows: Rows) -> list[str]:
    """What two layers gain, which heads matter, whether one feeds the other, and what the weights by hand do."""
    found = rows["seeds"]

    def each(key: str, name: str) -> list[float]:
        return [row[key][name] for row in found]

    two, one = ([row["loss"] for row in found], [row["control"][-1] for row in found])
    lines = [compared("Loss of two layers against one", two, one)]
    for role, (layer, about) in ROLES.items():
        other = f"other, layer {layer + 1}"
        what = f"Loss without the {role} head (which attends to {about}) against without another of its layer"
        lines.append(compared(what, each("without", role), each("without", other)))
        if layer == 0:
            what = f"Score of the induction head without the {role} head against without another"
            lines.append(compared(what, each("induction without", role), each("induction without", other)))
            first, second = ([row["side"][f"{role}, {part}"][1] for row in found] for part in PARTS)
            what = f"The same without it in the {PARTS[0]} alone against in the {PARTS[1]}"
            lines.append(compared(what, first, second))
    most = [max(ROLES, key=row["without"].get) for row in found]
    lines.append("Missed most is " + ", ".join(f"the {role} head in {most.count(role)}" for role in ROLES) + " seeds.")
    hand = {row["distinct"]: row["measured"][1] for row in rows["by hand"]}
    trained = plus_minus([row["accuracy"] for row in found], ".3f")
    lines.append(
        f"Set by hand, two heads are right in {hand[True]:.3f} of the tokens if none stands twice in a period, and in "
        f"{hand[False]:.3f} of those that the trained models saw ({trained})."
    )
    return lines


def draw(rows: Rows) -> Figure:
    """The two heads and the arrow between them; below, the losses, the scores, and what is left without a head."""
    figure = pyplot().figure(figsize=(10.5, 8.6))
    grid = figure.add_gridspec(2, 6, height_ratios=(5, 4))
    first, second = (figure.add_subplot(grid[0, i : i + 3]) for i in (0, 3))
    left, middle, right = (figure.add_subplot(grid[1, i : i + 2]) for i in (0, 2, 4))
    row, example = rows["seeds"][0], rows["example"][0]
    for axis, role in ((first, "previous"), (second, "induction")):
        image = axis.imshow(example[role], vmin=0, vmax=1)
        layer, head = divmod(row["heads"][role], SIZES["num_heads"])
        axis.set(title=f"{role} head (layer {layer + 1}, head {head + 1}): {ROLES[role][1]}")
        axis.set(xlabel="position attended to", ylabel="position that attends")
    figure.colorbar(image, ax=[first, second], label="attention weight", shrink=0.7)
    j = min(SHOWN - 1, example["period"] + 8) - example["period"] + 1
    arrow = {"arrowstyle": "->", "color": COLORS[1], "linewidth": 1.5, "connectionstyle": "arc3,rad=-0.25"}
    place = {"xycoords": second.transData, "textcoords": first.transData}
    ends = {"xy": (j, j - 1 + example["period"]), "xytext": (j - 1, j)}
    second.annotate("", **ends, **place, arrowprops=arrow, annotation_clip=False)
    title = "the first head tells position {} what precedes it; by that, the second finds it from position {}"
    figure.suptitle(f"Period {example['period']}: {title.format(j, j - 1 + example['period'])}")
    for each in rows["seeds"]:
        left.plot(each["steps"], each["control"], color=COLORS[3], linewidth=1)
        left.plot(each["steps"], each["losses"], color=COLORS[0], linewidth=1)
        for color, values in zip((COLORS[4], COLORS[2], COLORS[1]), np.transpose(each["scores"]), strict=True):
            middle.plot(each["steps"], values, color=color, linewidth=1)
        right.plot([each["loss"], *each["without"].values()], range(5, -1, -1), "o", color=COLORS[5], markersize=4)
    left.set(title="Loss of the part that repeats", xlabel="step", ylabel="loss (nats)")
    middle.set(title="Best head of each role", xlabel="step", ylabel="attention weight")
    right.set(title="Without one head", xlabel="loss (nats)", ylabel="removed head")
    right.set_yticks(range(5, -1, -1), ["none", *row["without"]])
    handles = [*left.lines[:2], *middle.lines[:3], right.lines[0]]
    names = ["one layer", "two layers", *(f"{role} score" for role in ROLES), "a seed"]
    figure.legend(handles, names, ncols=6, loc="outside lower center")
    return figure
