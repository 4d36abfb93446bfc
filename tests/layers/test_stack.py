"""What a configuration says reaches the sub-layers: the scale of the scores, and who sees later tokens."""

import numpy as np

from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, S, C = 2, 4, 5, 12


def config(**changes):
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 2}
    return TransformerConfig(**{**sizes, **changes})


def test_scores_that_are_not_scaled_are_those_of_larger_queries():
    rng = np.random.default_rng(37)
    x, memory = random_array(rng, B, T, C), random_array(rng, B, S, C)
    plain = randomize(builder(config(scale_scores=False), dtype=np.float64).decoder_layer())
    scaled = randomize(builder(config(), dtype=np.float64).decoder_layer())
    expected = plain(x, memory)
    assert relative_error(scaled(x, memory), expected) > 1e-3
    own, other = scaled.self_attention.sublayer, scaled.cross_attention.sublayer
    for queries in (own.qkv.W.data[:, :C], own.qkv.b.data[:C], other.q.W.data, other.q.b.data):
        queries *= 2.0  # the root of the 4 features of a head
    assert relative_error(scaled(x, memory), expected) <= 1e-13


def test_rotary_positions_turn_queries_and_keys_which_may_be_wider_than_values():
    wide = randomize(builder(config(positions="rope", d_k=6, d_v=4), dtype=np.float64).encoder())
    assert wide(random_array(np.random.default_rng(6), B, T, C)).shape == (B, T, C)


def sees_later(layer, *more):
    """Whether a change of the last token changes the output of the first."""
    x = random_array(np.random.default_rng(4), B, T, C)
    other = np.array(host(x))
    other[:, -1] += 1.0
    return not same(layer(device(other), *more)[:, 0], layer(x, *more)[:, 0])


def test_an_encoder_reads_in_both_directions_and_a_decoder_only_back():
    build = builder(config(attention="tiled"), dtype=np.float64)
    assert sees_later(randomize(build.encoder()))
    assert not sees_later(randomize(build.decoder()), random_array(np.random.default_rng(5), B, S, C))
