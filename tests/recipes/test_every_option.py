"""No option is silently ignored: on every task it changes what is learned, or it is refused by its name."""

import contextlib
import dataclasses

import numpy as np
import pytest

from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import TrainOptions, option_name
from minitransformer.system.files import checksum
from tests.cli.run import assert_refused, run
from tests.data.library import small_library

ALL = {field.name: field for recipe in RECIPES.values() for field in dataclasses.fields(recipe.defaults)}
SMALL = {"steps": 3, "batch_size": 3, "warmup": 2}
SMALL_TEXT = {**SMALL, "length": 12, "d_model": 8, "num_layers": 2, "text": "my.txt"}
SMALL_TRANSLATION = {
    **SMALL,
    "steps": 20,
    "batch_size": 40,
    "d_model": 8,
    "num_layers": 2,
    "vocab_size": 270,
    "text": "pairs.tsv",
}
OTHER = {  # another value of every option that changes what is learned
    "steps": 5,
    "batch_size": 4,
    "warmup": 3,
    "dropout": 0.5,
    "label_smoothing": 0.3,
    "optimizer": "muon",
    "weight_decay": 0.5,
    "positions": "learned",
    "attention": {"attention": "windowed", "window": 2},
    "window": {"attention": "windowed", "window": 3},
    "stride": {"attention": "strided", "window": 1, "stride": 2},
    "num_kv_heads": 2,
    "seed": 1,
    "factor": 0.7,
    "cooldown": 0.9,
    "pairs": 3,
    "peak": 0.7,
    "model": "gpt",
    "norm": "pre",
    "config": "base",
    "length": 9,
    "d_model": 16,
    "vocab_size": 280,
    "num_heads": 2,
    "num_layers": 1,
    "share_layers": True,
    "text": "other.txt",
    "tokenizer": "characters",
    "mine": True,
    "swap": True,
    "noise": "order",
    "passage": 50,
}
OTHER_OF = {
    "translation": {"text": "other.tsv", "model": "lstm"},
    "denoise": {"model": "lstm"},
    "classify": {"text": "relabelled.tsv", "length": 3},
    "digits": {"positions": "rope", "num_layers": 3},
    "masked": {"vocab_size": {"tokenizer": "bpe", "vocab_size": 280}, "tokenizer": "bpe"},
}
SHOWN_ELSEWHERE = ("minutes", "source", "target", "from_")  # in test_translation.py and tests/cli/test_from.py


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    """The current folder has two texts."""
    monkeypatch.chdir(tmp_path)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 2000)
    (tmp_path / "my.txt").write_text("".join(letters), encoding="utf8")
    (tmp_path / "other.txt").write_text("".join(reversed(letters)), encoding="utf8")
    words = ["".join(letters[i : i + 7]).strip() for i in range(0, 1400, 7)]
    for name, step in (("pairs.tsv", 1), ("other.tsv", -1)):
        lines = [f"a{one}\tb{other}\n" for one, other in zip(words, words[::step], strict=True)]
        (tmp_path / name).write_text("".join(lines), encoding="utf8")
    for name, count in (("labelled.tsv", 2), ("relabelled.tsv", 3)):
        lines = [f"{word}\t{i % count}\n" for i, word in enumerate(words)]
        (tmp_path / name).write_text("".join(lines), encoding="utf8")


def small(task):
    """The options of a short training."""
    if task == "denoise":
        return {**SMALL_TRANSLATION, "text": "my.txt", "passage": 20}
    if task in ("translation", "classify"):
        return SMALL_TRANSLATION if task == "translation" else {**SMALL_TEXT, "text": "labelled.tsv"}
    return SMALL_TEXT if hasattr(RECIPES[task].defaults, "text") else SMALL


def learned(recipe, options):
    """The checksum of the weights after training."""
    data = recipe.data(options)
    model_class, config = recipe.model(options, data)
    model = model_class(config, seed=options.seed)
    with recipe.layers(options, lambda: model_class(config), data):
        recipe.train(options, model, data)
    return checksum({}, model.state_dict())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "task",
    [
        name if name in ("copy", "text", "masked", "classify") else pytest.param(name, marks=pytest.mark.weekly)
        for name in RECIPES
    ],
)
def test_option_of_a_task_changes_what_it_learns(task, monkeypatch):
    recipe, used = RECIPES[task], []
    small_library(monkeypatch)
    monkeypatch.setattr(
        "minitransformer.recipes.toy.own_layers", lambda *given: used.append("mine") or contextlib.nullcontext()
    )
    defaults = dataclasses.replace(recipe.defaults, **small(task))
    expected = learned(recipe, defaults)
    assert learned(recipe, defaults) == expected
    for field in dataclasses.fields(defaults):
        if not field.metadata["identity"] or field.name in SHOWN_ELSEWHERE:
            continue
        other = OTHER_OF.get(task, {}).get(field.name, OTHER[field.name])
        options = dataclasses.replace(defaults, **(other if isinstance(other, dict) else {field.name: other}))
        if field.name == "config":  # too large to be trained here
            data = recipe.data(options)
            assert recipe.model(options, data) != recipe.model(defaults, data)
        elif field.name == "mine":
            assert (learned(recipe, options), used) == (expected, ["mine"])
        else:
            assert learned(recipe, options) != expected, field.name


@pytest.mark.parametrize(
    "task",
    [name if name in ("copy", "translation") else pytest.param(name, marks=pytest.mark.exhaustive) for name in RECIPES],
)
def test_option_of_other_tasks_is_refused_and_they_are_named(task, capsys, tmp_path):
    own = {field.name for field in dataclasses.fields(RECIPES[task].defaults)}
    for name in ALL.keys() - own:
        value = [] if OTHER.get(name) is True else [OTHER.get(name, 3)]
        others = ", ".join(other for other, recipe in RECIPES.items() if hasattr(recipe.defaults, name))
        refused = f"train: {task} has no option {option_name(name)}; tasks with this option: {others}\n"
        assert_refused(run(capsys, "train", task, option_name(name), *value), refused)
    files = ["labelled.tsv", "my.txt", "other.tsv", "other.txt", "pairs.tsv", "relabelled.tsv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_options_that_do_not_change_what_is_learned_are_these():
    assert {name for name, field in ALL.items() if not field.metadata["identity"]} == {
        *("threads", "grad_accumulation_steps", "deterministic", "shard_optimizer"),  # other rounding
        *("timeout", "checkpoint_interval", "keep_checkpoints", "eval_interval", "detect_anomaly", "force"),
        *("overwrite", "runs", "name", "recompute"),
    }
    assert len(dataclasses.fields(TrainOptions)) > 15
