"""`mt.generate` continues ids with ids, from any language model, as far as it is asked to."""

import numpy as np
import pytest

import minitransformer as mt
from tests.helpers import host

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 1, "dropout": 0.0}


def model_of(positions="rope", max_len=20):
    return mt.GPT(mt.gpt_config(13, **SIZES, max_len=max_len, positions=positions), seed=3)


def test_the_likeliest_tokens_are_those_of_the_whole_model_and_a_row_of_ids_gets_a_row():
    model, prompts = model_of(), np.array([[5, 4, 9], [7, 7, 3]])
    read = prompts
    for _ in range(6):
        read = np.concatenate([read, host(model(read))[:, -1].argmax(-1)[:, None]], axis=1)
    found = mt.generate(model, prompts, 6, mt.Greedy())
    np.testing.assert_array_equal(found, read[:, 3:])
    np.testing.assert_array_equal(mt.generate(model, prompts[1], 6, mt.Greedy()), read[1, 3:])


@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_a_text_goes_on_beyond_the_length_of_training(positions):
    model = model_of(positions)
    ids = mt.generate(model, np.array([5, 4, 9]), 60)
    assert ids.shape == (60,)
    assert len(set(ids[20:].tolist())) > 5
    np.testing.assert_array_equal(mt.generate(model, np.array([5, 4, 9]), 60), ids)  # drawn, but always the same


def test_prompts_of_several_lengths_are_continued_within_the_length_of_training_alone():
    model, prompts = model_of(), np.array([[5, 4, 9], [7, 0, 0]])
    alone = mt.generate(model, np.array([7]), 6, mt.Greedy())
    np.testing.assert_array_equal(mt.generate(model, prompts, 6, mt.Greedy())[1], alone)
    with pytest.raises(ValueError, match="prompts of several lengths can be continued up to max_len = 20"):
        mt.generate(model, prompts, 30)
