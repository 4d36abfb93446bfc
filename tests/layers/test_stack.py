"""What a configuration says reaches the sub-layers that it is meant for: each dropout rate its own place."""

import numpy as np
import pytest

from minitransformer.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from minitransformer.models import TransformerConfig
from minitransformer.system.generators import make_generator
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, C = 2, 4, 5, 12
RATES = {"dropout": 0.125, "attention_dropout": 0.25, "ffn_dropout": 0.5}  # multiples of 2^-16, so that they are exact


def config(**changes):
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 2}
    return TransformerConfig(**{**sizes, **changes})


def rates_found(layer, *inputs):
    """{place: the dropout rate that acted there} in one pass through an encoder or decoder layer."""
    _, cache = layer.forward(*inputs, rng=make_generator(6))
    masks = {f"{name} residual": sublayer.dropout for name, sublayer in cache._asdict().items()}
    masks["inside feed_forward"] = cache.feed_forward.sublayer.dropout
    for name in cache._fields[:-1]:
        masks[f"weights of {name}"] = getattr(cache, name).sublayer.attention.keep
    return {place: 0.0 if mask is None else 1.0 - 1.0 / mask.scale for place, mask in masks.items()}


def expected_rates(attentions, dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0):
    """The paper has dropout on the output of each sub-layer; the other two places have rates of their own."""
    return {
        **{f"{name} residual": dropout for name in (*attentions, "feed_forward")},
        "inside feed_forward": ffn_dropout,
        **{f"weights of {name}": attention_dropout for name in attentions},
    }


@pytest.mark.parametrize("given", [*([name] for name in RATES), list(RATES)], ids="-".join)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_each_dropout_rate_acts_in_its_own_place_and_nowhere_else(norm, given):
    rates = {name: RATES[name] if name in given else 0.0 for name in RATES}
    rng = np.random.default_rng(36)
    x, memory = random_array(rng, B, T, C), random_array(rng, B, S, C)
    encoder = EncoderLayer(config(norm=norm, **rates), dtype=np.float64)
    decoder = DecoderLayer(config(norm=norm, **rates), dtype=np.float64)
    assert rates_found(encoder, x) == expected_rates(["self_attention"], **rates)
    assert rates_found(decoder, x, memory) == expected_rates(["self_attention", "cross_attention"], **rates)


def test_scores_that_are_not_scaled_are_those_of_larger_queries():
    rng = np.random.default_rng(37)
    x, memory = random_array(rng, B, T, C), random_array(rng, B, S, C)
    plain = randomize(DecoderLayer(config(scale_scores=False), dtype=np.float64))
    scaled = randomize(DecoderLayer(config(), dtype=np.float64))
    expected = plain(x, memory)
    assert relative_error(scaled(x, memory), expected) > 1e-3
    own, other = scaled.self_attention.sublayer, scaled.cross_attention.sublayer
    for queries in (own.qkv.W.data[:, :C], own.qkv.b.data[:C], other.q.W.data, other.q.b.data):
        queries *= 2.0  # the root of the 4 features of a head
    assert relative_error(scaled(x, memory), expected) <= 1e-13


def sees_later(layer, *more):
    """Whether a change of the last token changes the output of the first."""
    x = random_array(np.random.default_rng(4), B, T, C)
    other = np.array(host(x))
    other[:, -1] += 1.0
    return not same(layer(device(other), *more)[:, 0], layer(x, *more)[:, 0])


def test_an_encoder_reads_in_both_directions_and_a_decoder_only_back():
    tiled, memory = config(attention="tiled"), random_array(np.random.default_rng(5), B, S, C)
    for make in (EncoderLayer, Encoder):
        assert sees_later(randomize(make(tiled, dtype=np.float64)))
    for make in (DecoderLayer, Decoder):
        assert not sees_later(randomize(make(tiled, dtype=np.float64)), memory)
