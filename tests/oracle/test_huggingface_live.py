"""Proves that our GPT, BERT and T5 compute what Hugging Face's do, side by side, and load the files that they save.

Skipped where `transformers` is missing; `test_huggingface_reference` compares with stored values then.
"""

import json

import numpy as np
import pytest

from minitransformer.interop import load_huggingface, model_from_huggingface
from minitransformer.interop.huggingface_configs import BERT_FIELDS, GPT2_FIELDS, T5_FIELDS, config_from_huggingface
from tests.oracle.huggingface_cases import BOUND, CASES, MORE_CASES, config_file, errors
from tests.oracle.problems import assert_all_within

transformers = pytest.importorskip("transformers")

from tests.oracle.huggingface_modules import quiet, solve  # noqa: E402 - it needs transformers

ALL = CASES | MORE_CASES
each_case = pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in MORE_CASES)]
)


@each_case
def test_logits_and_every_gradient_equal_theirs(name, record_property):
    _, problem, solution = solve(ALL[name], seed=11)
    assert_all_within(BOUND, errors(ALL[name], problem, solution), name, record_property)


@each_case
def test_the_files_that_they_save_give_the_same_model(name, tmp_path):
    theirs, problem, _ = solve(ALL[name], seed=14)
    with quiet():
        theirs.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text("utf8"))
    expected = model_from_huggingface(problem.state, config_file(ALL[name]), dtype=np.float64)
    got = load_huggingface(tmp_path, dtype=np.float64)
    assert written["model_type"] == ALL[name].kind
    assert got.config == expected.config
    assert_same_weights(got, expected)


def assert_same_weights(got, expected):
    """AssertionError unless both models have the same weights to the bit."""
    got, expected = got.state_dict(), expected.state_dict()
    assert got.keys() == expected.keys()
    assert all(np.array_equal(array, expected[name]) for name, array in got.items())


@pytest.mark.parametrize(
    ("cls", "fields"), [("GPT2Config", GPT2_FIELDS), ("BertConfig", BERT_FIELDS), ("T5Config", T5_FIELDS)]
)
def test_what_we_take_as_usual_is_what_they_do(cls, fields):
    theirs = getattr(transformers, cls)()
    ours_alone = {"position_embedding_type", "n_positions", "num_decoder_layers"}  # of older files; or None for equal
    for name in fields.keys() - (ours_alone if cls != "GPT2Config" else set()):
        assert getattr(theirs, name) == fields[name].usual, name
    empty = config_from_huggingface({"model_type": theirs.model_type})
    assert config_from_huggingface(theirs.to_dict()) == empty
