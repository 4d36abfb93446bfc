"""Made-up input of every kind ends with a right result or a refusal in one line.

400 cases by default, 5,000 with `--exhaustive`, and as many as you like with `python -m tests.refusals`.
"""

import sys
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minitransformer.tokenizers import CharacterTokenizer
from tests.refusals import drawn_files as files
from tests.refusals import drawn_inputs as inputs
from tests.refusals import ending
from tests.refusals.__main__ import TARGETS
from tests.refusals.damage import KINDS, damage
from tests.refusals.drawn import Drawn
from tests.refusals.ending import REFUSED, SUCCESS, WrongResultError, ending_of


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Sound files."""
    return files.Good(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("cases", [400, pytest.param(5_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_every_case_ends_with_a_right_result_or_a_refusal_in_one_line(target, cases, good):
    @settings(
        max_examples=cases // len(TARGETS) + 1,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data):
        outcome = ending_of(target, Drawn(data), good)
        assert outcome in (SUCCESS, REFUSED), repr(outcome)

    run()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_cases_are_not_all_refused_and_not_all_taken(target, good):
    endings = [ending_of(target, np.random.default_rng([7, number]), good) for number in range(60)]
    assert {SUCCESS, REFUSED} == set(endings)


@pytest.mark.parametrize("kind", dict.fromkeys(KINDS), ids=lambda kind: kind.__name__)
def test_each_kind_of_damage_changes_the_bytes_of_a_file(kind, good):
    changed = [kind(np.random.default_rng(number), good.checkpoint) for number in range(20)]
    assert len(set(changed) - {good.checkpoint}) > 1


def test_damage_can_be_done_to_nothing_and_is_the_same_for_the_same_seed(good):
    for number in range(200):
        damage(np.random.default_rng(number), b"")
        first, again = (damage(np.random.default_rng(number), good.checkpoint) for _ in range(2))
        assert first == again


def functional(name):
    """A module of functional, whose name leads to the function of the same name."""
    return sys.modules[f"minitransformer.functional.{name}"]


def plant_damage_unseen(patch):
    """A checkpoint is believed, whatever its checksum."""

    class Equal(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return True

        def __ne__(self, other):
            return False

    patch.setattr("minitransformer.training.checkpoint.checksum", lambda *content: Equal())


def plant_tokenizers_unseen(patch):
    """A tokenizer is believed, whatever its checksum."""
    patch.setattr("minitransformer.tokenizers.saving.tokenizer_from_dict", lambda content: CharacterTokenizer("ab"))
    patch.setattr("minitransformer.tokenizers.saving.check_names", lambda *names: None)


def plant_lossy_text(patch):
    """What is no UTF-8 becomes a question mark."""
    patch.setattr("minitransformer.system.files.read_bytes", lambda path: path.read_bytes().replace(b"\xff", b"?")[:99])


def plant_untidy_pairs(patch):
    """Sentences of pairs stay as they are, except for white space at their ends."""
    patch.setattr("minitransformer.data.pairs.tidy", str.strip)


def plant_masks_unchecked(patch):
    """Numbers are taken for a mask."""
    patch.setattr(functional("softmax"), "check_mask", lambda allowed, shape: None)


def plant_shapes_unchecked(patch):
    """Attention takes what NumPy can broadcast."""
    patch.setattr(functional("attention.full"), "check_attention", lambda q, k, v: None)


def plant_ids_unchecked(patch):
    """Ids below 0 count from the end."""
    patch.setattr("minitransformer.models.gpt.check_batch_of_ids", lambda *ids: None)
    patch.setattr(functional("embedding"), "check_ids", lambda *ids: None)


def plant_any_configuration(patch):
    """Text is taken for a number or a switch."""
    patch.setattr("minitransformer.config.base.check_integer", lambda name, value, least: value)
    patch.setattr("minitransformer.config.base.check_switch", lambda name, value: value)
    patch.setattr("minitransformer.config.transformer.check_heads", lambda d_model, num_heads: None)
    patch.setattr("minitransformer.config.transformer.check_choice", lambda name, value, choices: value)


def plant_long_refusals(patch):
    """A refusal on the command line takes two lines."""
    patch.setattr("minitransformer.cli.one_line", lambda text: f"{text}\nsorry")


PLANTED = [
    (plant_damage_unseen, files.checkpoints),
    (plant_tokenizers_unseen, files.tokenizers),
    (plant_lossy_text, files.texts),
    (plant_untidy_pairs, files.pairs),
    (plant_masks_unchecked, inputs.masks),
    (plant_shapes_unchecked, inputs.attentions),
    (plant_ids_unchecked, inputs.ids),
    (plant_any_configuration, inputs.configurations),
    (plant_long_refusals, inputs.command_lines),
]


@pytest.mark.parametrize(("plant", "target"), PLANTED, ids=lambda value: value.__name__)
def test_planted_mistakes_are_seen(plant, target, good, monkeypatch):
    plant(monkeypatch)
    endings = (ending_of(target, np.random.default_rng(number), good) for number in range(400))
    assert any(ending not in (SUCCESS, REFUSED) for ending in endings)


def test_case_without_end_is_stopped():
    with pytest.raises(ending.HangError), ending.limited(0.05):
        time.sleep(30)


@pytest.mark.parametrize(
    "failure",
    [
        KeyError("x"),
        AttributeError("x"),
        ValueError("two\nlines"),
        ValueError(""),
        WrongResultError("x"),
        MemoryError(),
    ],
    ids=repr,
)
def test_what_is_no_refusal_in_one_line_is_a_failure(failure):
    def target(rng, good):
        raise failure

    assert ending_of(target, None, None) is failure


def test_warnings_are_failures():
    assert isinstance(ending_of(lambda rng, good: warnings.warn("x", stacklevel=1), None, None), UserWarning)
