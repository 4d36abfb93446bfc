"""What do the heads of your translation model look at, by rules that were fixed before anybody looked?

The paper's figures 3 to 5 show heads of the encoder that follow long dependencies, find what a pronoun stands for, and
keep to the structure of the sentence, on sentences that its authors chose. Here each of the three is a number for every
head, measured on all test sentences and set against equal weights and against a model that has learned nothing. The
figure has the best head on its median sentence: half of the sentences show it better, and half worse.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.report import Figure, Options, Parser, Rows, Table, draw_map, listed
from minitransformer import Transformer, to_host
from minitransformer.decoding.search.translate import encode_source
from minitransformer.plotting import pyplot, readable
from minitransformer.recipes.saved import open_model
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import Tokenizer

SECONDS = {True: 10, False: 60}
SENTENCES = {True: 40, False: 10_000}
SHOWN = range(8, 17)  # tokens of a sentence that may be drawn
RESAMPLED = 1000  # times the sentences are drawn again, for the interval
PRONOUNS = frozenset(
    ("er", "sie", "es", "ihn", "ihm", "ihr", "ihnen", "sein", "seine", "seinen", "seinem", "seiner", "ihre", "ihren")
)
SPACE = " "  # begins the token that begins a word, except the first


def distances(tokens: list[str]) -> np.ndarray:
    """(S, S): how many tokens the key is away."""
    places = np.arange(len(tokens), dtype=float)
    return abs(places[:, None] - places)


def antecedents(tokens: list[str]) -> np.ndarray:
    """(S, S): 1 where the query is a pronoun and the key an earlier capitalised word, in German a noun or a name.

    NaN in the rows of other queries. The first word is capitalised in any case, so it does not count.
    """
    places = np.arange(len(tokens))
    noun = np.array([token[1:2].isupper() and token[0] == SPACE for token in tokens]) & (places > 0)
    rows = np.where(noun & (places < places[:, None]), 1.0, 0.0)
    pronoun = np.array([token[0] == SPACE and token[1:] in PRONOUNS for token in tokens])
    goes_on = np.array([token[0].isalpha() for token in [*tokens[1:], SPACE]])  # "er" as the beginning of "erhob"
    rows[~pronoun | goes_on | (rows.sum(axis=1) == 0)] = np.nan
    return rows


def clauses(tokens: list[str]) -> np.ndarray:
    """(S, S): 1 where query and key are in the same clause, which ends with a comma; NaN without a comma inside."""
    ends = np.array([token.endswith((",", ";", ":")) for token in tokens])
    clause = np.cumsum(ends) - ends
    same = (clause[:, None] == clause).astype(float)
    return same if clause[-1] else np.full_like(same, np.nan)


class Rule(NamedTuple):
    """One of the three numbers: the mean over queries of sum_j weight_ij value_ij."""

    figure: int  # of the paper
    about: str
    values: Callable[[list[str]], np.ndarray]


RULES = {
    "distance": Rule(3, "tokens between query and key, in the mean", distances),
    "antecedent": Rule(4, "weight of pronouns on earlier nouns", antecedents),
    "clause": Rule(5, "weight inside one's own clause", clauses),
}


def add_options(parser: Parser) -> None:
    """The run whose model is looked into."""
    help = "a run of `train translation` from German (default runs/translation)"
    parser.add_argument("--run", default="runs/translation", metavar="RUN", help=help)


def rows(options: Options) -> Rows:
    """For each rule the numbers of every head, of equal weights, and of an untrained model's best head."""
    model, tokenizer, sources = open_run(options.run)
    sentences = [encode_source(tokenizer, source, model.config.max_len, model.config) for source in sources]
    sentences = sentences[: SENTENCES[options.quick]]
    untrained = Transformer(model.config, seed=options.seed)
    measured: dict[str, list[np.ndarray]] = {name: [] for name in RULES}
    for ids in tqdm(sentences, unit="sentence"):
        equal = np.full((1, len(ids), len(ids)), 1 / len(ids))
        weights = np.concatenate([weights_of(model, ids), weights_of(untrained, ids), equal])
        tokens = [tokenizer.tokens[id] for id in ids]
        for name, rule in RULES.items():
            measured[name].append(measure(weights, rule.values(tokens)))
    layers, heads = model.config.num_layers, model.config.num_heads
    names = [f"layer {layer}, head {head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]

    def example(ids: np.ndarray, head: int) -> dict[str, Any]:
        tokens = [readable(tokenizer.tokens[id]) for id in ids]
        return {"tokens": tokens, "weights": weights_of(model, ids)[head].round(4).tolist()}

    rng = np.random.default_rng(options.seed)
    return {"rules": [summarize(name, np.array(measured[name]), names, sentences, example, rng) for name in RULES]}


def open_run(run: str) -> tuple[Transformer, Tokenizer, list[str]]:
    """The model, its tokenizer and the sources of its test. Raises ValueError if these are not in `run`."""
    model, tokenizer = open_model(run, "translation")
    pairs = Path(run) / "translations.tsv"
    if not isinstance(model, Transformer) or tokenizer is None or not pairs.is_file():
        raise ValueError(f"{run} is not a finished run of `minitransformer train translation` with a Transformer")
    return model, tokenizer, [line.split("\t")[0] for line in pairs.read_text("utf8").splitlines()[1:]]


def measure(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean over the queries of sum_j weights (heads, S, S) values (S, S), NaN where no query has values."""
    chosen = ~np.isnan(values).any(axis=1)
    if not chosen.any():
        return np.full(len(weights), np.nan)
    return (weights[:, chosen] * values[chosen]).sum(axis=2).mean(axis=1)


def weights_of(model: Any, ids: np.ndarray) -> np.ndarray:
    """The weights of all heads of the encoder for one sentence (S,) -> (N h, S, S)."""
    found = model.attention_weights(ids[None], ids[None, :1]).encoder
    return np.concatenate([to_host(weights)[0] for weights in found]).astype(float)


def summarize(
    name: str,
    measured: np.ndarray,
    heads: list[str],
    sentences: list[np.ndarray],
    example: Callable[[np.ndarray, int], dict[str, Any]],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """The row of a rule, from its numbers (sentences, heads + untrained heads + 1), NaN where a sentence has none."""
    places = np.flatnonzero(~np.isnan(measured[:, 0]))
    measured = measured[places]
    means = measured.mean(axis=0)
    best = int(means[: len(heads)].argmax())
    again = measured[rng.integers(len(places), size=(RESAMPLED, len(places))), best].mean(axis=1)
    short = [i for i in range(len(places)) if len(sentences[places[i]]) in SHOWN] or list(range(len(places)))
    median = sorted(short, key=lambda i: measured[i, best])[len(short) // 2]
    return {
        "rule": name,
        "sentences": len(places),
        "heads": dict(zip(heads, means.tolist(), strict=False)),
        "best": heads[best],
        "interval": np.quantile(again, (0.025, 0.975)).tolist(),
        "untrained": float(means[len(heads) : -1].max()),
        "equal": float(means[-1]),
        "example": example(sentences[places[median]], best),
    }


def tables(rows: Rows) -> list[Table]:
    """Every head by every rule, and the best beside what proves nothing."""
    columns = {
        "figure": (lambda row: RULES[row["rule"]].figure,),
        "what is measured": (lambda row: RULES[row["rule"]].about,),
        "sentences": ("sentences", ","),
        "best head": ("best",),
        "its value": (lambda row: "{:.2f} ({:.2f} to {:.2f})".format(row["heads"][row["best"]], *row["interval"]),),
        "best untrained head": ("untrained", ".2f"),
        "equal weights": ("equal", ".2f"),
    }
    each = [[head, *(f"{row['heads'][head]:.2f}" for row in rows["rules"])] for head in rows["rules"][0]["heads"]]
    every = Table("all", ["encoder", *(row["rule"] for row in rows["rules"])], each)
    return [listed("best", rows["rules"], columns), every]


def findings(rows: Rows) -> list[str]:
    """Whether the best head does what the paper's does, and more so than heads that have learned nothing."""
    lines = []
    for row in rows["rules"]:
        rule, value, others = RULES[row["rule"]], row["heads"][row["best"]], (row["untrained"], row["equal"])
        verdict = "above" if row["interval"][0] > max(others) else "not above"
        lines.append(
            f"Figure {rule.figure}, {rule.about}: {value:.2f} in {row['best']}, {verdict} the {others[0]:.2f} of the "
            f"best untrained head and the {others[1]:.2f} of equal weights."
        )
    return lines


def draw(rows: Rows) -> Figure:
    """The best head of each rule on its median sentence: the queries down the side, the keys along the top."""
    figure, axes = pyplot().subplots(1, len(rows["rules"]), figsize=(12.4, 4.8))
    for axis, row in zip(axes, rows["rules"], strict=True):
        example = row["example"]
        image = draw_map(axis, example["weights"], example["tokens"], example["tokens"], upright=True)
        axis.set(title=f"figure {RULES[row['rule']].figure}, {row['rule']}: {row['best']}")
        axis.set(xlabel="token attended to", ylabel="token that attends")
    figure.colorbar(image, ax=axes.tolist(), label="attention weight")
    return figure
