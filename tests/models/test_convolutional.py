"""How a convolutional language model must behave whatever its weights: no look ahead, and no farther than its reach."""

import numpy as np
import pytest

from minitransformer.decoding import decoding_state, generate_from
from minitransformer.decoding.faster.before_2017 import ConvState
from minitransformer.models import ConvConfig, ConvLM
from tests.helpers import host, no_ids, randomize, relative_error, same

V, C = 11, 6
IDS = np.array([[3, 8, 4, 0, 6, 7, 2, 9], [7, 5, 9, 4, 10, 3, 3, 8]])  # id 0 is a token as any other
every_model = pytest.mark.parametrize(
    "changes", [{}, {"dilation": 2, "norm": "pre"}, {"activation": "relu", "kernel_size": 2}], ids=str
)


def build(**changes):
    """A model with order-one weights."""
    fields = {"vocab_size": V, "d_model": C, "num_layers": 2, "dropout": 0.0, **changes}
    return randomize(ConvLM(ConvConfig(**fields), dtype=np.float64))


@every_model
def test_changing_a_token_changes_the_logits_from_there_to_the_end_of_the_reach(changes):
    model = build(**changes)
    logits, reach = model(IDS), model.config.receptive_field
    for t in range(IDS.shape[1]):
        other = IDS.copy()
        other[:, t] = 1
        changed = host(model(other) != logits).any(axis=-1)
        assert not changed[:, :t].any()
        assert not changed[:, t + reach :].any()
        assert changed[:, t].all()


def test_the_receptive_field_grows_with_the_dilation():
    assert ConvConfig(V, num_layers=3, kernel_size=3).receptive_field == 7
    assert ConvConfig(V, num_layers=3, kernel_size=3, dilation=2).receptive_field == 15
    assert ConvConfig(V, num_layers=4, kernel_size=2, dilation=2).dilations == (1, 2, 4, 8)


@every_model
@pytest.mark.parametrize("pieces", [(8,), (1,) * 8, (3, 1, 4)])
def test_reading_in_pieces_gives_the_logits_of_the_whole(changes, pieces):
    model = build(**changes)
    whole, state, read = model(IDS), ConvState(model, IDS[:, :0]), 0
    for count in pieces:
        logits = state.extend(IDS[:, read : read + count])
        read += count
        assert relative_error(logits, whole[:, read - 1]) <= 1e-12


@every_model
def test_prompts_of_different_lengths_are_continued_as_each_alone(changes):
    model = build(**changes)
    prompts = np.array([[5, 7, 4, 0, 0], [3, 8, 4, 9, 6], [6, 0, 0, 0, 0]])
    state = decoding_state(model, prompts, 4)
    together = generate_from(state, state.prompt, 4, eos=None).ids
    for row, prompt in enumerate(prompts):
        alone = decoding_state(model, prompt[prompt != 0][None], 4)
        assert same(together[row : row + 1], generate_from(alone, alone.prompt, 4, eos=None).ids)


def test_selected_sequences_go_on_as_before():
    model = build()
    state, rows = ConvState(model, no_ids(2), padding=np.array([0, 2])), [1, 1, 0]
    state.extend(IDS[:, :4])
    state.select(rows)
    expected = ConvState(model, no_ids(3), padding=np.array([2, 2, 0]))
    expected.extend(IDS[rows, :4])
    assert same(state.extend(IDS[rows, 4:]), expected.extend(IDS[rows, 4:]))


def test_pre_norm_has_one_more_norm_after_the_last_layer():
    names = {norm: dict(build(norm=norm).named_parameters()) for norm in ("post", "pre")}
    assert names["pre"].keys() - names["post"].keys() == {"norm.gamma", "norm.beta"}


def test_the_tied_matrix_is_one_and_an_untied_one_is_another():
    tied, untied = build(), build(tie_embeddings=False)
    assert tied.output.E is tied.embedding.tokens.E
    assert untied.num_parameters() - tied.num_parameters() == V * C
