"""Incremental decoding gives the logits of the whole model, for any pieces and after any selection of rows."""

import numpy as np
import pytest

from minitransformer.config import POSITIONS
from minitransformer.decoding import SlidingState, decoding_state, greedy_decode
from minitransformer.decoding.faster.before_2017 import ConvState
from minitransformer.decoding.faster.gpt import GPTState
from minitransformer.decoding.rereading import left_padded
from minitransformer.models import ConvConfig, ConvLM, Seq2Seq, Seq2SeqConfig, Transformer
from minitransformer.models.since_2017.gpt import GPT, gpt_config
from tests.helpers import host, no_ids, randomize, relative_error, same
from tests.models.test_behaviour import SOURCE, V, both_switches, build_random
from tests.models.test_gpt import build_random as build_gpt

T, MAX_LEN = 5, 8
TARGET = np.array([[1, 6, 3, 8, 9], [1, 5, 7, 4, 10]])  # (B, T)
PIECES = [(1, 1, 1, 1, 1), (2, 1, 2), (1, 4)]

every_split = pytest.mark.parametrize("pieces", PIECES)
every_position = pytest.mark.parametrize("positions", POSITIONS)


def check_pieces(state, ids, pieces, expected, bound=1e-12):
    """Assert that after each piece the state returns the whole model's logits at its last token."""
    end = 0
    for count in pieces:
        logits, end = state.extend(ids[:, end : end + count]), end + count
        assert relative_error(logits, expected[:, end - 1]) <= bound


@both_switches
@pytest.mark.parametrize("pieces", PIECES[:3])
def test_transformer_in_pieces_equals_the_whole(norm, tied, pieces):
    model = build_random(norm, tied)
    check_pieces(decoding_state(model, SOURCE, MAX_LEN), TARGET, pieces, model(SOURCE, TARGET))


@pytest.mark.parametrize("switch", [{"scale_embeddings": False}, {"scale_scores": False}, {"scale_output": True}])
def test_every_scale_of_the_model_holds_in_decoding(switch):
    model = build_random("pre", True, **switch)
    check_pieces(decoding_state(model, SOURCE, MAX_LEN), TARGET, (1, 3, 1), model(SOURCE, TARGET))


@every_split
def test_no_token_attends_to_padding_among_the_tokens(pieces):
    model, target = build_random("post", False), np.array([[1, 0, 3, 0, 9], [1, 5, 0, 4, 0]])
    expected = model(SOURCE, target)
    check_pieces(decoding_state(model, SOURCE, MAX_LEN), target, pieces, expected)
    assert relative_error(model(SOURCE, TARGET), expected) > 1e-3, "it must matter which tokens are there"


@pytest.mark.parametrize("rows", [[0], [1, 0, 0, 1]])
def test_selected_rows_continue_as_if_decoded_alone(rows):
    model, target = build_random("post", False), np.array([[1, 6, 0, 8, 9], [1, 5, 7, 4, 10]])  # one with padding
    state = decoding_state(model, SOURCE, MAX_LEN)
    state.extend(target[:, :3])
    state.select(rows)
    check_pieces(state, target[rows, 3:], (1, 1), model(SOURCE[rows], target[rows])[:, 3:])


def test_keys_and_values_of_the_source_are_copied_only_when_rows_change_their_source():
    model = build_random("post", False)
    state = decoding_state(model, SOURCE, MAX_LEN)
    state.select([0, 0, 0, 1, 1, 1])
    (kept, *_) = state.memory_kv_caches
    keys = kept.k
    state.select([2, 0, 0, 5, 3, 4])
    assert kept.k is keys
    state.select([3, 4, 5, 0, 1, 2])
    assert kept.k is not keys
    said = np.array([[1, 6, 3]] * 6)
    check_pieces(state, said, (1, 2), model(SOURCE[[1, 1, 1, 0, 0, 0]], said))


def test_rows_can_be_selected_again_and_again_and_before_anything_was_read():
    model, sources = build_random("pre", True), np.arange(2)
    state, said = decoding_state(model, SOURCE, MAX_LEN), TARGET[:, :0]
    for step, rows in enumerate([[1, 0, 1], [2, 2, 0], [1, 0]]):
        state.select(rows)
        sources = sources[rows]
        said = np.concatenate([said[rows], 3 + step + np.arange(len(rows))[:, None]], axis=1)
        logits = state.extend(said[:, -1:])
        assert relative_error(logits, model(SOURCE[sources], said)[:, -1]) <= 1e-12


def test_kv_caches_are_allocated_once():
    state = decoding_state(build_random("post", True), SOURCE, MAX_LEN)
    kv_caches = [*state.kv_caches, *state.memory_kv_caches]
    arrays = [array for kv_cache in kv_caches for array in (kv_cache.k, kv_cache.v)]
    assert len(arrays) == 8
    for t in range(4):
        state.extend(TARGET[:, t : t + 1])
    assert all(
        after is before
        for after, before in zip((a for kv_cache in kv_caches for a in (kv_cache.k, kv_cache.v)), arrays, strict=True)
    )
    assert [kv_cache.length for kv_cache in kv_caches] == [4, 4, 5, 5]


def test_tokens_beyond_max_new_tokens_are_refused_and_change_nothing():
    model = build_random("post", True)
    state = decoding_state(model, SOURCE, 3)
    state.extend(TARGET[:, :2])
    with pytest.raises(ValueError, match=r"^the KV cache holds 3 positions, but 4 are needed$"):
        state.extend(TARGET[:, 2:4])
    logits = state.extend(TARGET[:, 2:3])
    assert relative_error(logits, model(SOURCE, TARGET[:, :3])[:, -1]) <= 1e-12


@every_position
@pytest.mark.parametrize("pieces", PIECES[:2])
def test_gpt_in_pieces_equals_the_whole(positions, pieces):
    model = build_gpt(positions)
    check_pieces(GPTState(model, no_ids(2), MAX_LEN), TARGET, pieces, model(TARGET))


@pytest.mark.parametrize("norm", ["post", "pre"])
@every_position
def test_gpt_texts_padded_on_the_left_go_on_as_if_alone(positions, norm):
    model, padding = build_gpt(positions, norm=norm), np.array([0, 2, 3])
    texts = [[6, 3, 8, 9, 4, 7], [5, 7, 4, 10], [8, 3, 3]]
    ids = np.array([[0] * (6 - len(text)) + text for text in texts])
    rows = [2, 0, 1, 0]
    state = GPTState(model, no_ids(3), 9, padding)
    state.extend(ids[:, :4])
    state.select(rows)
    for end in (5, 6):
        logits = state.extend(ids[rows, end - 1 : end])
        for got, row in zip(logits, rows, strict=True):
            expected = model(ids[row : row + 1, padding[row] : end])
            assert relative_error(got, expected[0, -1]) <= 1e-12


def test_each_row_is_moved_to_the_right_by_its_own_padding():
    ids = np.array([[5, 3, 8], [4, 0, 0], [7, 6, 0], [0, 0, 0]])
    moved, padding = left_padded(ids)
    assert moved.tolist() == [[5, 3, 8], [0, 0, 4], [0, 7, 6], [0, 0, 0]]
    assert padding.tolist() == [0, 2, 1, 3]


@every_position
def test_prompts_of_any_length_are_continued_as_if_alone(positions):
    model, prompts = build_gpt(positions), [[6, 3, 8, 9], [5], [7, 4]]
    padded = np.array([[*prompt, *[0] * (4 - len(prompt))] for prompt in prompts])
    together = greedy_decode(model, padded, 5)
    logits = host(decoding_state(model, padded, 5).extend(left_padded(padded)[0]))
    for row, prompt in enumerate(prompts):
        alone = greedy_decode(model, np.array([prompt]), 5)[0]
        assert [i for i in together[row] if i] == [i for i in alone if i]
        assert relative_error(logits[row], host(model(np.array([prompt])))[0, -1]) <= 1e-12


def test_gpt_reads_max_len_tokens_and_no_more():
    state = GPTState(build_gpt(max_len=4), no_ids(2), MAX_LEN)
    state.extend(TARGET[:, :4])
    with pytest.raises(ValueError, match="4 positions"):
        state.extend(TARGET[:, 4:])


def test_state_of_the_transformer_reads_its_source_once(monkeypatch):
    read, encode = [], Transformer.encode
    monkeypatch.setattr(Transformer, "encode", lambda self, source: read.append(source) or encode(self, source))
    state = decoding_state(build_random("post", True), SOURCE, MAX_LEN)
    state.extend(TARGET[:, :2])
    state.extend(TARGET[:, 2:3])
    assert len(read) == 1
    assert same(read[0], SOURCE)


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_sliding_state_reads_the_later_half_again_whenever_its_window_is_full(chunk):
    config = gpt_config(11, d_model=12, num_heads=3, d_ff=20, num_layers=2, max_len=8, dropout=0.0)
    model = randomize(GPT(config, dtype=np.float64), scale=0.4)
    ids = np.random.default_rng(3).integers(1, 11, (2, 30))
    state, seen = SlidingState(model, 2), 0
    for end in range(chunk, 31, chunk):
        logits = state.extend(ids[:, end - chunk : end])
        seen = seen + chunk if seen + chunk <= 8 else 4
        assert relative_error(logits, host(model(ids[:, end - seen : end]))[:, -1]) < 1e-12, end


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_sliding_state_may_have_a_smaller_window_than_the_model(window):
    model, ids = build_gpt("learned", max_len=8), np.random.default_rng(5).integers(1, V, (2, 13))
    state, seen = SlidingState(model, 2, window), 0
    for end in range(1, 14):
        logits = state.extend(ids[:, end - 1 : end])
        seen = seen + 1 if seen < window else max(1, window // 2)
        assert relative_error(logits, host(model(ids[:, end - seen : end]))[:, -1]) < 1e-12, end


def test_a_sliding_state_keeps_the_sequences_that_are_selected():
    config = gpt_config(11, d_model=12, num_heads=3, d_ff=20, num_layers=1, max_len=6, dropout=0.0)
    model = randomize(GPT(config, dtype=np.float64), scale=0.4)
    ids = np.random.default_rng(4).integers(1, 11, (3, 12))
    state = SlidingState(model, 3)
    for i in range(12):
        logits = state.extend(ids[:, i : i + 1])
        if i == 4:
            state.select(np.array([2, 0, 2]))
            ids = ids[[2, 0, 2]]
        if i > 4:
            assert relative_error(logits[0], host(logits)[2]) < 1e-14
            read = ids[:, i + 1 - state.read.shape[1] : i + 1]
            assert relative_error(logits, host(model(read))[:, -1]) < 1e-12, i


STATES = {
    "transformer": lambda: decoding_state(build_random("post", True), SOURCE, MAX_LEN),
    "GPT": lambda: GPTState(build_gpt(), no_ids(2), MAX_LEN),
    "convolutional": lambda: ConvState(build_conv(), no_ids(2)),
    "recurrent": lambda: decoding_state(build_seq2seq(), SOURCE, MAX_LEN),
}


def build_conv():
    return randomize(ConvLM(ConvConfig(V, d_model=6, num_layers=2, dropout=0.0), dtype=np.float64))


def build_seq2seq():
    return Seq2Seq(Seq2SeqConfig(V, d_model=5, hidden_size=6, dropout=0.0, max_len=20))


@pytest.mark.parametrize("name", STATES)
def test_every_state_refuses_tokens_that_are_not_one_row_for_each_sequence(name):
    state = STATES[name]()
    with pytest.raises(TypeError, match=r"^the next tokens must be an array of ids, got list$"):
        state.extend([[1], [1]])
    for ids in (np.ones((1, 1), int), np.ones(2, int), np.ones((3, 1), int), np.ones((2, 1, 1), int)):
        with pytest.raises(ValueError, match=r"^the next tokens must be ids of shape \(2, n\), got \("):
            state.extend(ids)
    state.select([1, 0, 1])
    assert state.extend(np.ones((3, 1), int)).shape == (3, V)


@pytest.mark.parametrize("build", [build_random, build_gpt, build_conv, build_seq2seq])
def test_every_model_refuses_to_write_less_than_one_token(build):
    model = build("post", True) if build is build_random else build()
    with pytest.raises(ValueError, match=r"^max_new_tokens must be at least 1, got 0$"):
        decoding_state(model, SOURCE, 0)
    assert decoding_state(model, SOURCE, 1).extend(SOURCE[:, :1]).shape == (len(SOURCE), V)


@pytest.mark.parametrize("build", [build_gpt, build_conv])
def test_a_state_may_hold_no_sequences(build):
    state = decoding_state(build(), no_ids(0), 4)
    assert state.prompt.shape == (0, 0)
    assert state.prompt.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("build", [build_random, build_seq2seq])
def test_a_translation_begins_with_bos_in_the_dtype_of_its_source(build, dtype):
    model = build("post", True) if build is build_random else build()
    prompt = decoding_state(model, SOURCE.astype(dtype), 3).prompt
    assert prompt.tolist() == [[1]] * len(SOURCE)
    assert prompt.dtype == dtype
