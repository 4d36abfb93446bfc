"""Layers of one model that differ: some have a window, the others see all, with another base of RoPE (Gemma 3)."""

import json

import numpy as np
import pytest

from minitransformer.config import Rope, Windowed, flat_fields, nested_fields
from minitransformer.decoding.faster.gpt import GPTState
from minitransformer.layers.since_2017.attention_kinds import TiledAttention
from minitransformer.layers.since_2017.kv_cache import RollingKVCache
from minitransformer.models import GPT, TransformerConfig, gpt_config
from tests.helpers import randomize, relative_error, same
from tests.models.test_gpt import V

IDS = np.array([[1, 6, 3, 8, 9, 2], [1, 5, 7, 4, 10, 3]])  # (B, T)
SIZES = {"d_model": 12, "num_heads": 2, "d_ff": 8, "num_layers": 3, "max_len": 9, "dropout": 0.0}
DIFFERENT = {"attention": Windowed(2, full_layers=(1,)), "positions": Rope(50.0)}
OTHER_ANGLES = {"attention": Windowed(2, full_layers=(1,), rope_base=7.0)}
TODAY = {"d_k": 4, "d_v": 4, "qk_norm": True, "num_kv_heads": 1, "norm": "sandwich", **OTHER_ANGLES}


def build(**changes):
    return randomize(GPT(gpt_config(V, **{**SIZES, **DIFFERENT, **changes}), dtype=np.float64))


def test_only_the_layers_that_are_named_see_everything():
    kinds = [layer.self_attention.sublayer.kind for layer in build().blocks.layers]
    assert [kind.pattern.window for kind in kinds] == [2, None, 2]
    assert all(isinstance(kind, TiledAttention) and kind.pattern.causal for kind in kinds)


def test_a_token_reaches_as_far_as_the_windows_and_the_full_layer_let_it():
    other = IDS.copy()
    other[:, 0] = 0
    far = [relative_error(model(other)[:, -1], model(IDS)[:, -1]) for model in (build(), build(attention=Windowed(2)))]
    assert far[0] > 1e-3
    assert far[1] == 0.0, "three windows of 2 reach back three tokens"


@pytest.mark.parametrize(("rope", "own"), [(Rope(50.0), 7.0), (Rope(50.0, factor=3.0), 50.0)])
def test_layers_with_a_window_have_their_own_angles(rope, own):
    layers = build(positions=rope, attention=Windowed(2, full_layers=(1,), rope_base=own)).blocks.layers
    same_base = build(positions=Rope(own)).blocks.layers
    tables = [layer.self_attention.sublayer.positions.cos for layer in layers]
    assert tables[0] is tables[2]
    assert same(tables[0], same_base[0].self_attention.sublayer.positions.cos)
    assert not same(tables[0], tables[1])


@pytest.mark.parametrize("changes", [{}, TODAY], ids=["pre", "today"])
@pytest.mark.parametrize("pieces", [(1, 1, 1, 1, 1, 1), (3, 1, 2)])
def test_decoding_in_pieces_equals_the_whole(changes, pieces):
    model, end = build(**changes), 0
    state, expected = GPTState(model, IDS[:, :0], SIZES["max_len"]), model(IDS)
    assert [isinstance(kv_cache, RollingKVCache) for kv_cache in state.kv_caches] == [True, False, True]
    for count in pieces:
        logits, end = state.extend(IDS[:, end : end + count]), end + count
        assert relative_error(logits, expected[:, end - 1]) <= 1e-12


def test_a_configuration_from_a_file_is_the_same():
    config = gpt_config(V, **{**SIZES, **DIFFERENT, **OTHER_ANGLES})
    assert TransformerConfig(**nested_fields(json.loads(json.dumps(flat_fields(config))))) == config
