"""The kinds of attention in whole models: what they see, what decoding keeps of the past, and what is refused."""

import tracemalloc

import numpy as np
import pytest

from minitransformer.config import Strided, Windowed
from minitransformer.decoding import decoding_state
from minitransformer.decoding.faster.gpt import GPTState
from minitransformer.layers.since_2017.kv_cache import KVCache, LinearAttentionState, RollingKVCache
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from tests.helpers import host, no_ids, randomize, relative_error

V, T = 11, 9
KINDS = {
    "full": {},
    "tiled": {"attention": "tiled"},
    "windowed": {"attention": Windowed(3)},
    "global": {"attention": Windowed(2, num_global=2)},
    "strided": {"attention": Strided(2, stride=3)},
    "linear": {"attention": "linear"},
}
SIZES = {"d_model": 24, "num_heads": 4, "d_ff": 10, "num_layers": 2, "max_len": 12}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_gpt(kind, seed=0, **fields):
    return randomize(GPT(gpt_config(V, **SIZES, **KINDS[kind], **fields), dtype=np.float64), seed, scale=0.3)


def ids_of(rows=2, length=T, seed=0):
    return np.random.default_rng(seed).integers(1, V, (rows, length))


@every_kind
@pytest.mark.parametrize("num_kv_heads", [None, 2])
@pytest.mark.parametrize("pieces", [[1] * T, [2, 5, 1, 1]], ids=str)
def test_decoding_in_pieces_gives_the_logits_of_the_whole(kind, num_kv_heads, pieces):
    model, ids = make_gpt(kind, num_kv_heads=num_kv_heads), ids_of()
    expected, state, read = model(ids), GPTState(model, ids[:, :0], T), 0
    for count in pieces:
        logits = state.extend(ids[:, read : read + count])
        read += count
        assert relative_error(logits, expected[:, read - 1]) <= 1e-12


@pytest.mark.host_only  # what a GPU allocates is not traced
@pytest.mark.parametrize(
    "kind", ["tiled", *(pytest.param(kind, marks=pytest.mark.weekly) for kind in ("windowed", "linear"))]
)
def test_long_prompt_is_read_without_an_array_of_its_length_squared(kind):
    length = 2048
    sizes = {**SIZES, "d_model": 8, "num_heads": 2, "num_layers": 1, "max_len": length + 1}
    model = randomize(GPT(gpt_config(V, **sizes, **KINDS[kind]), dtype=np.float64), scale=0.3)
    ids = ids_of(rows=1, length=length)
    expected = model(ids)[:, -1]
    tracemalloc.start()
    logits = GPTState(model, no_ids(1), length).extend(ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < length**2  # bytes: not even a mask
    assert relative_error(logits, expected) <= 1e-12
    if kind == "tiled":
        full = randomize(GPT(gpt_config(V, **sizes), dtype=np.float64), scale=0.3)
        assert relative_error(logits, GPTState(full, no_ids(1), length).extend(ids)) <= 1e-12


@every_kind
def test_prompts_of_different_lengths_continue_as_each_would_alone(kind):
    model = make_gpt(kind)
    prompts = ids_of(length=5)
    prompts[1, 3:] = 0
    if kind == "global":
        with pytest.raises(ValueError, match="prompts of the same length"):
            decoding_state(model, prompts, 4)
        return
    state = decoding_state(model, prompts, 4)
    state.extend(state.prompt)
    logits = state.extend(np.array([[4], [5]]))
    assert relative_error(logits[0], model(np.append(prompts[0], 4)[None])[0, -1]) <= 1e-12
    assert relative_error(logits[1], model(np.append(prompts[1, :3], 5)[None])[0, -1]) <= 1e-12


@every_kind
def test_encoder_decoder_decodes_with_a_padded_source_as_it_trains(kind):
    config = TransformerConfig(V, **SIZES, **KINDS[kind], num_kv_heads=2)
    model = randomize(Transformer(config, dtype=np.float64), scale=0.3)
    source, target = ids_of(length=7), ids_of(seed=1)
    source[0, 4:] = 0
    expected, state, read = model(source, target), decoding_state(model, source, T), 0
    for count in (3, 1, 1, 4):
        logits = state.extend(target[:, read : read + count])
        read += count
        assert relative_error(logits, expected[:, read - 1]) <= 1e-12


@pytest.mark.parametrize("kind", ["windowed", "strided", "global"])
def test_token_outside_of_the_pattern_is_not_seen_in_one_layer(kind):
    model = make_gpt(kind)
    weights = host(model.attention_weights(ids_of())[0])
    sees = {"windowed": {6, 7, 8}, "strided": {2, 5, 7, 8}, "global": {0, 1, 7, 8}}[kind]
    assert {s for s in range(T) if weights[0, 0, 8, s] > 0} == sees


def test_kv_cache_is_as_small_as_the_kind_allows():
    def caches(kind, **fields):
        return GPTState(make_gpt(kind, **fields), no_ids(3), 12).kv_caches[0]

    assert caches("full").k.shape == (3, 4, 12, 6)
    assert caches("full", num_kv_heads=1).k.shape == (3, 1, 12, 6)
    assert isinstance(caches("windowed"), RollingKVCache)
    assert caches("windowed", num_kv_heads=2).k.shape == (3, 2, 3, 6)
    assert type(caches("strided")) is type(caches("global")) is KVCache
    assert isinstance(caches("linear"), LinearAttentionState)
    assert caches("linear", num_kv_heads=2).sums.shape == (3, 2, 6, 7)


@pytest.mark.parametrize("kind", ["windowed", "linear"])
def test_selected_sequences_go_on_as_they_would_alone(kind):
    model, ids = make_gpt(kind), ids_of(3)
    state = GPTState(model, no_ids(3), T)
    state.extend(ids[:, :5])
    state.select(np.array([2, 0, 2]))
    logits = state.extend(ids[[2, 0, 2], 5:6])
    assert relative_error(logits, model(ids[[2, 0, 2], :6])[:, 5]) <= 1e-12
