"""The options of a task: a dataclass, from which its command line follows; what it refuses, it calls by its option."""

import argparse
import dataclasses
import math
from pathlib import Path

import pytest

from minitransformer import named_config, noam
from minitransformer.recipes import RECIPES, get_recipe
from minitransformer.recipes.options import TrainOptions, add_options, from_json, option_name, to_json
from minitransformer.recipes.run import saved_options
from minitransformer.training.saving.checkpointer import SavedRun

every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)


def parsed(recipe, *line):
    parser = argparse.ArgumentParser()
    add_options(parser, recipe.defaults)
    return dataclasses.replace(recipe.defaults, **vars(parser.parse_args([str(word) for word in line])))


@every_recipe
def test_without_options_the_defaults_are_taken(recipe):
    assert parsed(recipe) == recipe.defaults


@every_recipe
def test_every_field_has_an_option_with_a_help_text(recipe, capsys):
    with pytest.raises(SystemExit):
        parsed(recipe, "--help")
    said = capsys.readouterr().out
    for field in dataclasses.fields(recipe.defaults):
        assert option_name(field.name) in said
        assert field.metadata["help"]


@every_recipe
def test_options_survive_json(recipe):
    options = dataclasses.replace(
        recipe.defaults, steps=7, dropout=0.25, threads=3, runs=Path("a/b"), attention="windowed", window=5
    )
    assert from_json(recipe.defaults, to_json(options)) == options


def test_values_that_json_does_not_have_are_the_defaults():
    defaults = get_recipe("copy").defaults
    assert from_json(defaults, {"steps": 5, "threads": None, "unheard_of": 1}) == dataclasses.replace(defaults, steps=5)


@pytest.mark.parametrize(("name", "value"), [("steps", "5"), ("steps", 5.5), ("factor", "1"), ("runs", 3), ("mine", 1)])
def test_values_of_another_type_are_refused(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        from_json(get_recipe("copy").defaults, {name: value})


def test_help_shows_advanced_options_after_all_others(capsys):
    with pytest.raises(SystemExit):
        parsed(get_recipe("copy"), "--help")
    everyday, advanced = capsys.readouterr().out.split("advanced options:")
    assert all(
        f"\n  {name} " in everyday for name in ("--steps", "--seed", "--name", "--overwrite", "--factor", "--mine")
    )
    assert all(f"\n  {name} " in advanced for name in ("--threads", "--force", "--detect-anomaly", "--window"))


@pytest.mark.parametrize(  # others are among the refusals
    ("changes", "message"),
    [
        ({"label_smoothing": -0.1}, "--label-smoothing must be at least 0 and less than 1, got -0.1"),
        ({"optimizer": "muon", "shard_optimizer": True}, "--shard-optimizer needs --optimizer adam, got muon"),
        ({"weight_decay": -0.1}, "--weight-decay must be at least 0, got -0.1"),
        ({"weight_decay": math.nan}, "--weight-decay must be at least 0, got nan"),
        ({"weight_decay": math.inf}, "--weight-decay must be finite, got inf"),
        ({"threads": 1025}, "--threads must be from 1 to 1024, got 1025"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
        ({"attention": "strided", "window": 3}, "--attention strided needs --stride"),
        ({"attention": "windowed", "window": 3, "stride": 2}, "--stride needs --attention strided, got windowed"),
        ({"attention": "windowed", "window": 0}, "--window must be at least 1, got 0"),
        ({"num_kv_heads": 0}, "--num-kv-heads must be at least 1, got 0"),
        *(({"name": name}, "--name must be at most 100 letters") for name in ("", "..", "-x", "a b", 101 * "a")),
    ],
)
def test_values_out_of_range_are_refused_by_the_name_of_the_option(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainOptions(**changes)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("copy", {"factor": 0.0}, "--factor must be greater than 0, got 0.0"),
        ("copy", {"cooldown": 1.0}, "--cooldown must be at least 0 and less than 1, got 1.0"),
        ("copy", {"mine": True, "num_kv_heads": 2}, "--mine excludes --num-kv-heads"),
        ("masked", {"positions": "gps"}, "--positions must be one of sinusoidal"),
        ("masked", {"peak": 0.0}, "--peak must be greater than 0, got 0.0"),
        ("shakespeare", {"num_layers": -1}, "--num-layers must be from 1 to 1000, got -1"),
    ],
)
def test_a_recipes_own_options_are_refused_by_their_names(task, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(get_recipe(task).defaults, **changes)


def test_an_unknown_recipe_is_refused_with_those_that_exist():
    with pytest.raises(
        ValueError, match="must be one of copy, reverse, sort, addition, recall, parsing, text, shakespeare"
    ):
        get_recipe("poetry")


def test_a_cooldown_lets_the_papers_rate_fall_to_zero_over_the_last_part_of_the_steps():
    recipe = get_recipe("reverse")
    options = dataclasses.replace(recipe.defaults, steps=20, warmup=4, factor=0.7)
    config = named_config("tiny", 29)
    rates, papers = (
        [recipe.schedule(dataclasses.replace(options, cooldown=share), config)(step) for step in range(1, 21)]
        for share in (0.25, 0.0)
    )
    assert papers == [noam(step, 64, warmup=4, factor=0.7) for step in range(1, 21)]
    assert rates[:15] == papers[:15]
    falling = [rate / paper for rate, paper in zip(rates[15:], papers[15:], strict=True)]
    assert falling == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0], rel=1e-14)


def test_a_run_that_is_older_than_the_cooldown_is_resumed_without_it_and_with_more_averages():
    about = {"recipe": "reverse", "options": {"steps": 1000}, "data": {}}
    recipe, options = saved_options(Path("old.safetensors"), SavedRun(None, ({}, {}), about, Path("old.safetensors")))
    assert (options.steps, options.cooldown) == (1000, 0.0)
    assert recipe.averaging(options).count == 20
    about["options"]["cooldown"] = 0.3
    _, options = saved_options(Path("new.safetensors"), SavedRun(None, ({}, {}), about, Path("new.safetensors")))
    assert options.cooldown == 0.3
    assert recipe.averaging(options).count == 10
