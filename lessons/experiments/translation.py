"""How well do the Transformer and what it replaced translate real sentences, after the same time?

Three models of as many parameters learn from the same pairs for the same time: an LSTM that hands over one fixed vector
(Sutskever et al. 2014), an LSTM with additive attention (Bahdanau et al. 2015), and the Transformer. BLEU by the length
of the source is what Bahdanau et al. show in their figure 2: one vector is too small for a long sentence. BLEU by the
cost of training is table 2 of the Transformer's paper.
"""

import dataclasses
from functools import partial
from typing import Any

from experiments.measuring.equal_terms import train_all, train_for, widest
from experiments.report import Figure, Options, Rows, Table, entries, legend_below, listed
from minitransformer import translate
from minitransformer.data.bible import database_path
from minitransformer.evaluation.translation import bleu_by_length, has_sacrebleu, score
from minitransformer.inspection import flops_by_parameters
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.recipes import get_recipe
from minitransformer.recipes.translation import flops_of

SECONDS = {True: 60, False: 900}
TRAINING = {True: 6.0, False: 300.0}  # seconds of CPU time of each model
SENTENCES = {True: 40, False: 10_000}  # of the test, at most
# table 2 of the paper: BLEU on English to German, and the cost of training in FLOPs, which is capacity times time
IN_PAPER = {
    "GNMT + RL": (24.6, 2.3e19),
    "ConvS2S": (25.16, 9.6e18),
    "MoE": (26.03, 2.0e19),
    "Transformer, base": (27.3, 3.3e18),
    "Transformer, big": (28.4, 2.3e19),
}
TITLES = {"lstm": "LSTM, fixed vector", "lstm-attention": "LSTM, additive attention", "transformer": "Transformer"}


def rows(options: Options) -> Rows:
    """The scores of the three models. Raises ValueError if the sentences or sacrebleu are not installed."""
    if not has_sacrebleu():
        raise ValueError("BLEU needs sacrebleu, which is not installed: pip install -e '.[translation]'")
    database_path()  # so that a missing package is noticed before the processes start
    work = partial(train_and_test, quick=options.quick, seed=options.seed)
    return {"models": train_all(work, [(name,) for name in TITLES])}


def train_and_test(name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model for TRAINING seconds -> a row with its scores."""
    recipe = get_recipe("translation")
    options = dataclasses.replace(recipe.defaults, model=name, seed=seed)
    data = recipe.data(options)
    model_class, config = make_config(recipe, options, data)
    model: Any = model_class(config, seed=seed)
    trained = train_for(
        model, data, TRAINING[quick], seed, options.peak, options.batch_size, options.label_smoothing, options.warmup
    )
    sources, references = (list(side)[: SENTENCES[quick]] for side in zip(*data.test.pairs, strict=True))
    beam, greedy = (translate(model, data.tokenizer, sources, beam=beam) for beam in (4, 1))
    return {
        "model": name,
        "parameters": model.num_parameters(),
        "sentences": len(sources),
        **trained,
        "flops": flops_of(config, data, trained["tokens"]),
        "flops_by_parameters": flops_by_parameters(config, *[trained["tokens"] / 2] * 2),
        **score(beam, references)._asdict(),
        "greedy": score(greedy, references).bleu,
        "by_length": [group._asdict() for group in bleu_by_length(sources, beam, references)],
    }


def make_config(recipe: Any, options: Any, data: Any) -> tuple[Any, Any]:
    """The model's class, and the widest configuration with at most as many parameters as the recipe's Transformer."""

    def make(options: Any) -> Any:
        model_class, config = recipe.model(options, data)
        return model_class(config, seed=None)

    if options.model == recipe.defaults.model:
        return recipe.model(options, data)
    limit = make(recipe.defaults).num_parameters()
    width = widest(lambda width: make(dataclasses.replace(options, d_model=width)), limit)
    return recipe.model(dataclasses.replace(options, d_model=width), data)


def tables(rows: Rows) -> list[Table]:
    """The scores of each model, in all and by the length of the source."""
    models = rows["models"]
    model: dict[str, tuple] = {"model": (lambda row: TITLES[row["model"]],)}
    sizes = {"parameters": ("parameters", ","), "steps": ("steps", ","), "tokens read": ("tokens", ",")}
    scores = {
        "BLEU, beam 4": (lambda row: f"{row['bleu']:.2f} ± {row['interval']:.2f}",),
        "BLEU, greedy": ("greedy", ".2f"),
        "chrF": ("chrf", ".2f"),
    }
    bounds = [f"{group['shortest']}-{group['longest']}" for group in models[0]["by_length"]]
    lengths = [{**row, "groups": [group["bleu"] for group in row["by_length"]]} for row in models]
    costs = {
        **{"BLEU": ("bleu", ".2f"), "FLOPs of training": ("flops", ".2e"), "6 N D": ("flops_by_parameters", ".2e")},
        "BLEU per 10^15 FLOPs": (lambda row: row["bleu"] / row["flops"] * 1e15, ".0f"),
    }
    cost = listed("cost", models, model | costs)
    cost.cells.extend(
        [f"paper: {name}", str(bleu), f"{flops:.1e}", "", f"{bleu / flops * 1e15:.4f}"]
        for name, (bleu, flops) in IN_PAPER.items()
    )
    by_length = {"BLEU by words of the source": model["model"], **entries(bounds, "groups", ".1f")}
    return [listed("scores", models, model | sizes | scores), listed("", lengths, by_length), cost]


def findings(rows: Rows) -> list[str]:
    """The scores in one sentence, and what they cost in another."""
    scores = ", ".join(f"{TITLES[row['model']]} {row['bleu']:.1f}" for row in rows["models"])
    costs = ", ".join(f"{TITLES[row['model']]} {row['flops']:.1e}" for row in rows["models"])
    return [f"BLEU with a beam of 4: {scores}.", f"FLOPs of training, in the same CPU time: {costs}."]


def draw(rows: Rows) -> Figure:
    """BLEU of every model over the length of the source, each group at the middle of its lengths; and over the cost."""
    figure, (axis, costs) = pyplot().subplots(1, 2, figsize=(9, 4), sharey=True)
    for color, row in zip(COLORS, rows["models"], strict=False):
        middles = [(group["shortest"] + group["longest"]) / 2 for group in row["by_length"]]
        label = f"{TITLES[row['model']]}: {row['bleu']:.1f} in all"
        scores = [group["bleu"] for group in row["by_length"]]
        axis.plot(middles, scores, "o-", color=color, markersize=4, label=label)
        costs.plot(row["flops"], row["bleu"], "o", color=color)
    for marker, theirs, label in (("s", True, "the paper's base and big"), ("x", False, "others in its table 2")):
        points = [(flops, bleu) for name, (bleu, flops) in IN_PAPER.items() if ("Transformer" in name) is theirs]
        costs.plot(*zip(*points, strict=True), marker, color=GREY, label=label)
    axis.set(title="Translation, German to English", xlabel="words of the source", ylabel="BLEU", ylim=(0, None))
    costs.set(title="Table 2: ours (counted), the paper's (stated)", xlabel="FLOPs of training", xscale="log")
    legend_below(figure, axis, costs, ncols=3)
    return figure
