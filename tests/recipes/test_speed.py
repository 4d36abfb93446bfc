"""What is said about threads that were asked for, before the training."""

import dataclasses
import types

import pytest

from minitransformer.models import named_config
from minitransformer.recipes import RECIPES, speed

RECIPE = RECIPES["copy"]
NARROW, WIDE = named_config("tiny", 29), named_config("base", 29)


@pytest.fixture
def measured(monkeypatch):
    """Seconds of a step by the number of threads; a number that is not there must not be measured."""
    seconds = {}
    monkeypatch.setattr(speed, "seconds_of_a_step", lambda recipe, options, *_: seconds[options.threads])
    monkeypatch.setattr(speed, "threads_of_each", lambda config, options: 1 if config is NARROW else 4)
    return seconds


def said(threads, config, capsys):
    speed.say_if_slower(RECIPE, dataclasses.replace(RECIPE.defaults, threads=threads), config, None)
    return capsys.readouterr().out


def test_threads_that_are_slower_than_one_are_named_with_both_times(measured, capsys):
    measured.update({1: 0.015, 3: 0.052})
    assert said(3, NARROW, capsys) == (
        "measuring whether 3 threads are faster than one\nnote: a step takes 52 ms with 3 threads, and 15 ms with one\n"
    )


def test_threads_that_are_faster_than_one_need_no_note(measured, capsys):
    measured.update({1: 0.052, 3: 0.015})
    assert "note" not in said(3, NARROW, capsys)


@pytest.mark.parametrize(("threads", "config"), [(1, NARROW), (4, WIDE), (2, WIDE)])
def test_nothing_is_measured_for_one_thread_or_for_as_many_as_the_model_gets_by_itself(
    threads, config, measured, capsys
):
    assert said(threads, config, capsys) == ""


@pytest.mark.parametrize("root_measures", [True, False])
def test_all_processes_measure_if_the_root_does_whatever_their_own_machine_has(
    root_measures, measured, capsys, monkeypatch
):
    measured.update({1: 0.015, 3: 0.052})
    root = types.SimpleNamespace(collect=lambda enough: [not root_measures, enough])
    monkeypatch.setattr(speed, "connect", lambda: root)
    for config in (NARROW, WIDE):
        assert ("note" in said(3, config, capsys)) == root_measures


def test_a_step_is_timed_with_a_model_of_its_own():
    options = dataclasses.replace(RECIPE.defaults, threads=1, batch_size=2)
    assert 0 < speed.seconds_of_a_step(RECIPE, options, RECIPE.data(options), 1, 2) < 60
