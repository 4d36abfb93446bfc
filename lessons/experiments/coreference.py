"""Does an attention head find what a pronoun stands for, and is the answer lost without it?

    the trophy beside the chair does not fit into the suitcase because it is too big

"It" is the trophy if it is too big, and the suitcase if it is too small (a schema of Winograd's, see Levesque et al.
2012). A BERT has to write the noun where it reads "it". Which noun that is depends on the last word and on the nouns'
parts in the sentence, and a third noun may stand beside either. The pairs of nouns of the test were never together in
training.

The best head is the one whose row at "it" has the most weight on the antecedent, less that on the other noun. It is
chosen on one half of the test and measured on the other. Clark et al. (2019, "What Does BERT Look At?") found such a
head in BERT. That a head looks there does not say that the answer comes from there: so it is knocked out, and its row
is turned to the other noun.
"""

from typing import Any, NamedTuple

import numpy as np

from experiments.measuring.paired import interval, plus_minus, train_steps
from experiments.report import Figure, Options, Rows, Table
from minitransformer import BERT, bert_config, to_host
from minitransformer.data.text import TextBatch
from minitransformer.inspection import Rows as Turned
from minitransformer.inspection import heads, intervene
from minitransformer.plotting import pyplot
from minitransformer.system.progress import tqdm
from minitransformer.vocabulary import PAD

SECONDS = {True: 20, False: 180}
SEEDS = {True: 2, False: 10}
STEPS = {True: 500, False: 1000}
TESTED, PEAK, HELD_OUT = 400, 2e-3, 5  # one of five pairs of nouns is held out
FINDS = 0.95  # of the sentences, in which a head has more weight on the antecedent, to be called a head that finds it
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 2, "max_len": 32, "dropout": 0.0}
NOUNS = (
    *("trophy", "suitcase", "ball", "box", "chair", "table", "statue", "shelf", "rope", "crate"),
    *("lamp", "drawer", "stone", "sack", "piano", "cart", "drum", "trunk", "vase", "bag"),
)
KINDS = ("red", "blue", "old", "new")
FRAMES = {  # between the nouns: the adjectives by which "it" is the first noun, and the second
    "does not fit into": ("big", "small"),
    "cannot carry": ("weak", "heavy"),
    "has broken": ("hard", "soft"),
}
WORDS = ("the", "beside", "because", "it", "is", "too", *KINDS, *NOUNS)
VOCABULARY = ("", *dict.fromkeys([*WORDS, *" ".join([*FRAMES, *sum(FRAMES.values(), ())]).split()]))  # 0 is padding
IDS = {word: id for id, word in enumerate(VOCABULARY)}


class Sentence(NamedTuple):
    """Words, and where in them "it", its antecedent and the other noun of the frame are."""

    words: list[str]
    it: int
    antecedent: int
    other: int


def draw_sentence(rng: np.random.Generator, held_out: bool) -> Sentence:
    """A sentence with a pair of nouns from one of the two parts."""
    while True:
        a, b, c = rng.choice(len(NOUNS), 3, replace=False)
        if ((a + b) % HELD_OUT == 0) == held_out:
            break
    frame = list(FRAMES)[rng.integers(len(FRAMES))]
    words, places, beside = [], [], rng.integers(4)  # a third noun beside the first or the second, or none
    for place, noun in enumerate((a, b)):
        words += ["the", *([KINDS[rng.integers(len(KINDS))]] if rng.random() < 0.5 else []), NOUNS[noun]]
        places.append(len(words) - 1)
        words += ["beside", "the", NOUNS[c]] if beside == place else []
        words += frame.split() if place == 0 else []
    first = int(rng.integers(2))  # 1: "it" is the second noun
    words += ["because", "it", "is", "too", FRAMES[frame][first]]
    return Sentence(words, len(words) - 4, places[first], places[1 - first])


class Coreference:
    """Sentences in batches; the only target is the antecedent, at the place of "it"."""

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` sentences of the training -> ids and targets (B, T)."""
        return as_batch([draw_sentence(rng, held_out=False) for _ in range(size)])


def as_batch(sentences: list[Sentence]) -> TextBatch:
    """The sentences, padded."""
    ids = np.full((len(sentences), max(len(sentence.words) for sentence in sentences)), PAD)
    targets = ids.copy()
    for row, target, (words, it, antecedent, _) in zip(ids, targets, sentences, strict=True):
        row[: len(words)] = [IDS[word] for word in words]
        target[it] = row[antecedent]
    return TextBatch(ids, targets)


def rows(options: Options) -> Rows:
    """A model for each seed."""
    return {"models": [train_and_study(seed, STEPS[options.quick]) for seed in tqdm(options.seeds, unit="model")]}


def train_and_study(seed: int, steps: int) -> dict[str, Any]:
    """Train one model -> what its heads look at, and what it answers without them."""
    model = BERT(bert_config(len(VOCABULARY), **SIZES), seed=seed)
    trained = train_steps(model, Coreference(), steps, seed, PEAK)
    rng = np.random.default_rng([seed, 2])
    choosing, testing = ([draw_sentence(rng, True) for _ in range(TESTED)] for _ in range(2))
    looks = look(model, choosing)
    best = int((looks[0] - looks[1]).argmax())
    return {"seed": seed, **trained, "best": best, **study(model, best, testing)}


def look(model: BERT, sentences: list[Sentence]) -> np.ndarray:
    """Of every head at "it": its mean weight on the antecedent and on the other noun, and how often the first is more.

    -> (3, N h)
    """
    layers = [to_host(weights) for weights in model.attention_weights(as_batch(sentences).ids)]
    rows = np.concatenate(layers, axis=1)[np.arange(len(sentences)), :, [sentence.it for sentence in sentences]]
    places = np.array([(sentence.antecedent, sentence.other) for sentence in sentences])
    right, wrong = (np.take_along_axis(rows, places[:, [i], None], axis=2)[..., 0] for i in (0, 1))
    return np.array([right.mean(axis=0), wrong.mean(axis=0), (right > wrong).mean(axis=0)])


def study(model: BERT, best: int, sentences: list[Sentence]) -> dict[str, Any]:
    """What the heads look at, and the answers without each head and with rows that are turned."""
    every, H = heads(model), model.config.num_heads
    names = [f"layer {i // H + 1}, head {i % H + 1}" for i in range(len(every))]
    alone = [answers(model, sentences, change)["right"] for change in every]
    layer = slice(best // H * H, best // H * H + H)
    turned = {
        name: answers(model, sentences, turn(every[best].path, sentences, H, chosen))
        for name, chosen in (("best head", [best % H]), ("its layer", range(H)))
    }
    whole, of_layer = answers(model, sentences), answers(model, sentences, *every[layer])["right"]
    found = {"heads": names, "whole": whole, "looks": look(model, sentences).tolist(), "alone": alone}
    return {**found, "layer": of_layer, "turned": turned, "example": example(model, best, sentences)}


def answers(model: BERT, sentences: list[Sentence], *changes: Any) -> dict[str, float]:
    """The shares of answers that are "right", and that are the "other" noun, with these changes."""
    its = np.arange(len(sentences)), [sentence.it for sentence in sentences]
    batch = as_batch(sentences)
    with intervene(model, *changes):
        said = to_host(model(batch.ids))[its].argmax(axis=-1)
    wrong = [IDS[sentence.words[sentence.other]] for sentence in sentences]
    return {"right": float((said == batch.targets[its]).mean()), "other": float((said == wrong).mean())}


def turn(path: str, sentences: list[Sentence], H: int, chosen: Any) -> Turned:
    """The rows at "it" of the `chosen` heads, with all of their weight on the other noun."""
    B, T = as_batch(sentences).ids.shape
    weights, queries = np.zeros((B, 1, 1, T)), np.zeros((B, H, T), bool)
    for row, query, sentence in zip(weights, queries, sentences, strict=True):
        row[0, 0, sentence.other] = 1.0
        query[list(chosen), sentence.it] = True
    return Turned(path.removesuffix(".output"), weights, queries)


def example(model: BERT, best: int, sentences: list[Sentence]) -> list[dict[str, Any]]:
    """The row at "it" of the best head in the first sentence whose "it" is the first noun, and in its twin.

    The twin has the other adjective, so that "it" is the second noun.
    """
    one = next(sentence for sentence in sentences if sentence.antecedent < sentence.other)
    adjective = dict(FRAMES.values())[one.words[-1]]
    twin = Sentence([*one.words[:-1], adjective], one.it, one.other, one.antecedent)
    layers = model.attention_weights(as_batch([one, twin]).ids)
    weights = np.concatenate([to_host(layer) for layer in layers], axis=1)[:, best, one.it]
    return [{"words": s.words, "weights": row.tolist()} for s, row in zip((one, twin), weights, strict=True)]


def tables(rows: Rows) -> list[Table]:
    """One line for each seed."""
    columns = ["seed", "CPU s", "right", "best head", "on the antecedent", "on the other noun", "antecedent ahead"]
    more = ["right without it", "right without its layer", "turned: the other noun", "whole layer turned", "worst head"]
    cells = []
    for row in rows["models"]:
        best, worst = row["best"], int(np.argmin(row["alone"]))
        right, wrong, ahead = (numbers[best] for numbers in row["looks"])
        looks = [row["heads"][best], f"{right:.2f}", f"{wrong:.2f}", f"{ahead:.1%}"]
        shares = row["alone"][best], row["layer"], *(row["turned"][name]["other"] for name in row["turned"])
        lost = [*(f"{share:.1%}" for share in shares), f"{row['heads'][worst]}: {row['alone'][worst]:.1%}"]
        cells.append([str(row["seed"]), f"{row['seconds']:.0f}", f"{row['whole']['right']:.1%}", *looks, *lost])
    return [Table("", [*columns, *more], cells)]


def findings(rows: Rows) -> list[str]:
    """Whether a head finds the antecedent, and whether the answer needs it."""
    models = rows["models"]
    found = [row for row in models if row["looks"][2][row["best"]] >= FINDS]
    right = [row["whole"]["right"] for row in models]
    lines = [
        f"In {len(found)} of {len(models)} seeds a head has more weight on the antecedent than on the other noun in at "
        f"least {FINDS:.0%} of the sentences; the answer is right in {min(right):.1%} to {max(right):.1%} in all seeds."
    ]
    if found:
        lost = [row["whole"]["right"] - row["alone"][row["best"]] for row in found]
        mean, half = interval(lost)
        needed = "the answer needs it" if mean > half else "the answer does not measurably need it"
        same = sum(int(np.argmin(row["alone"])) == row["best"] for row in found)
        one, all = ([row["turned"][name]["other"] for row in found] for name in ("best head", "its layer"))
        lines += [
            f"Without this head {plus_minus(lost, '.3f')} of the answers are lost: {needed}. It is the head whose loss "
            f"costs most in {same} of these seeds.",
            f"Turned to the other noun it makes that the answer in {plus_minus(one)} of the sentences, and all heads "
            f"of its layer together in {plus_minus(all)}.",
        ]
    return lines


def draw(rows: Rows) -> Figure:
    """The row of the best head in two sentences that differ in one word, and what is right without each head."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(10.4, 4.6), width_ratios=(3, 2))
    row = rows["models"][0]
    pair = row["example"]
    places = np.arange(len(pair[0]["words"]))
    for shift, one in zip((-0.2, 0.2), pair, strict=True):
        label = f"... too {one['words'][-1]}"
        left.barh(places + shift, one["weights"], 0.4, label=label)
    words = [*pair[0]["words"][:-1], " / ".join(one["words"][-1] for one in pair)]
    left.set_yticks(places, words)
    left.invert_yaxis()
    left.set_title(f'where "it" looks: seed {row["seed"]}, {row["heads"][row["best"]]}')
    left.set(xlabel="attention weight", ylabel="token")
    left.legend()
    looks, alone = (np.array([row[name] for row in rows["models"]]) for name in ("looks", "alone"))
    for layer, gaps in enumerate(np.split(looks[:, 0] - looks[:, 1], SIZES["num_layers"], axis=1)):
        worth = np.split(alone, SIZES["num_layers"], axis=1)[layer]
        right.plot(gaps.ravel(), worth.ravel(), "o", alpha=0.7, label=f"heads of layer {layer + 1}")
    right.set(title="all heads of all seeds", xlabel="weight on the antecedent - weight on the other noun")
    right.set(ylabel="right answers without the head", ylim=(0, 1.05))
    right.legend()
    return figure
