"""The encoder is self-attention and feed-forward, each in its residual, N times, with a last norm where asked."""

import numpy as np
import pytest

from minitransformer.functional import padding_mask
from minitransformer.models import TransformerConfig
from minitransformer.models.build import builder
from tests.helpers import device, random_array, randomize, relative_error, same

B, S, H, C, F = 2, 5, 3, 12, 7
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 1, 7, 0]])


def config(**switches):
    sizes = {"vocab_size": 11, "d_model": C, "num_heads": H, "d_ff": F, "num_layers": 2}
    return TransformerConfig(**{**sizes, **switches})


def example():
    """x (B, S, C) and a mask of its padding."""
    return random_array(np.random.default_rng(33), B, S, C), padding_mask(device(SOURCE))


@pytest.mark.parametrize("final_norm", [None, False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_is_its_layers_in_order_and_an_optional_norm(norm, final_norm):
    encoder = randomize(builder(config(norm=norm, final_norm=final_norm), dtype=np.float64).encoder())
    x, allowed = example()
    expected = x
    for layer in encoder.layers:
        expected = layer(expected, allowed)
    normed = final_norm or (final_norm is None and norm == "pre")
    assert (encoder.norm is not None) == normed
    if normed:
        expected = encoder.norm(expected)
    assert relative_error(encoder(x, allowed), expected) <= 1e-12


def test_encoder_has_num_layers_layers_each_with_its_own_weights():
    encoder = builder(config(num_layers=3), np.random.default_rng(34)).encoder()
    first, *others = (layer.self_attention.sublayer.qkv.W.data for layer in encoder.layers)
    assert len(others) == 2
    assert not any(same(first, other) for other in others)
