"""What the paper's title claims, in miniature: real sentences, translated by the Transformer and by what it replaced.

Three models of as many parameters learn from the same pairs for the same time: an LSTM that hands over one fixed vector
(Sutskever et al. 2014), an LSTM with additive attention (Bahdanau et al. 2015), and the Transformer. BLEU by the length
of the source is what Bahdanau et al. show in their figure 2: one vector is too small for a long sentence.
"""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from minitransformer.bench.lengths import train_all
from minitransformer.compare.figures import plot_translation
from minitransformer.compare.training import train_for, widest
from minitransformer.data.bible import database_path
from minitransformer.decoding.translate import translate
from minitransformer.evaluation.translation import bleu_by_length, has_sacrebleu, score
from minitransformer.recipes import get_recipe
from minitransformer.system.process import keep_freed_memory, limit_threads

NAME = "translation"
DESCRIPTION = "BLEU of translations from German: one fixed vector, additive attention, Transformer"
SECONDS = {True: 60, False: 900}
TRAINING = {True: 6.0, False: 300.0}  # seconds of CPU time of each model
SENTENCES = {True: 40, False: 10_000}  # of the test, at most
TITLES = {"lstm": "LSTM, fixed vector", "lstm-attention": "LSTM, additive attention", "transformer": "Transformer"}
PROCESSES = 2


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Train and test the three models, print a table, and draw translation.png into `directory` -> the numbers.

    Raises ValueError if the sentences or sacrebleu are not installed.
    """
    if not has_sacrebleu():
        raise ValueError("BLEU needs sacrebleu, which is not installed: pip install -e '.[translation]'")
    database_path()  # so that a missing package is noticed before the processes start
    rows = train_all(partial(train_and_test, quick=quick, seed=seed), [(name,) for name in TITLES], PROCESSES)
    rows.sort(key=lambda row: list(TITLES).index(row["model"]))
    print(f"{TRAINING[quick]:.0f} s of training in CPU time on one thread, {rows[0]['sentences']} sentences to test\n")
    print(f"{'model':<26}{'parameters':>11}{'steps':>8}{'tokens':>12}{'BLEU':>7}{'±':>6}{'greedy':>8}{'chrF':>7}")
    for row in rows:
        print(
            f"{TITLES[row['model']]:<26}{row['parameters']:>11,}{row['steps']:>8,}{row['tokens']:>12,}"
            f"{row['bleu']:>7.2f}{row['interval']:>6.2f}{row['greedy']:>8.2f}{row['chrf']:>7.2f}"
        )
    bounds = [f"{group['shortest']}-{group['longest']}" for group in rows[0]["by_length"]]
    print(f"\n{'BLEU by words of the source':<37}" + "".join(f"{bound:>8}" for bound in bounds))
    for row in rows:
        scores = "".join(f"{group['bleu']:>8.1f}" for group in row["by_length"])
        print(f"{TITLES[row['model']]:<37}{scores}")
    figure = directory / "translation.png"
    plot_translation(rows, TITLES, figure)
    print(f"\nsaved {figure}\n{rows[0]['signature']}")
    return {"rows": rows}


def train_and_test(name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model for TRAINING seconds -> a row with its scores."""
    keep_freed_memory()
    recipe = get_recipe("translation")
    options = dataclasses.replace(recipe.defaults, model=name, seed=seed)
    data = recipe.data(options)
    model_class, config = make_config(recipe, options, data)
    model: Any = model_class(config, seed=seed)
    trained = train_for(
        model, data, TRAINING[quick], seed, options.peak, options.batch_size, options.label_smoothing, options.warmup
    )
    sources, references = (list(side)[: SENTENCES[quick]] for side in zip(*data.test.pairs, strict=True))
    with limit_threads(1):
        beam, greedy = (translate(model, data.tokenizer, sources, beam=beam) for beam in (4, 1))
    return {
        "model": name,
        "parameters": model.num_parameters(),
        "sentences": len(sources),
        **trained,
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
