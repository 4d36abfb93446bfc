"""The second model of the page, with all 26 letters."""

import numpy as np
import pytest

from minitransformer.explorer.export import data_text
from minitransformer.models import Transformer
from minitransformer.vocabulary import EOS, PAD
from tests.explorer.letters import CONFIG, LONGEST, Words, accuracy, letters_data, letters_file
from tests.explorer.reading import assert_up_to_date, read_model, state_of


@pytest.fixture(scope="module")
def committed():
    return read_model(letters_file().read_text("utf-8"))


@pytest.fixture(scope="module")
def model(committed):
    made = Transformer(CONFIG, seed=None, dtype=np.float64)
    made.load_state_dict(state_of(committed["weights"]["trained"], 1))
    return made


def test_file_is_what_the_library_writes_for_its_rounded_weights(committed, model):
    written = read_model(data_text(letters_data(model)))
    assert_up_to_date(committed, written)
    assert list(written["weights"]) == ["trained"]
    for name, array in written["weights"]["trained"].items():
        assert np.array_equal(array.round(3), array), name


def test_it_takes_the_place_of_the_running_example_and_loads_while_somebody_waits(committed):
    assert committed["tokens"][3:] == list("abcdefghijklmnopqrstuvwxyz")
    assert (committed["task"], committed["source_end"], committed["max_length"]) == ("reverse", [], LONGEST)
    assert letters_file().stat().st_size < 120_000


def test_it_reverses_words_of_every_length(model):
    assert min(accuracy(model, length, 100) for length in range(1, LONGEST + 1)) >= 0.97


@pytest.mark.exhaustive
def test_it_reverses_ten_thousand_words_of_each_length(model):
    assert min(accuracy(model, length) for length in range(1, LONGEST + 1)) >= 0.99


def test_it_is_trained_without_eos_after_the_source():
    batch = Words().batch(np.random.default_rng(0), 200)
    assert not (batch.source == EOS).any()
    lengths = (batch.source != PAD).sum(axis=1)
    assert set(lengths) == set(range(1, LONGEST + 1))
    for source, target, length in zip(batch.source, batch.target_out, lengths, strict=True):
        assert target[: length + 1].tolist() == [*source[:length][::-1], EOS]
