"""The decoder is masked self-attention, attention to the memory and feed-forward, N times over one memory."""

import numpy as np
import pytest

from minitransformer.functional import causal_mask, padding_mask
from minitransformer.models.build import builder
from tests.helpers import device, random_array, randomize, relative_error
from tests.layers.test_encoder import config

B, T, S, H, C = 2, 4, 5, 3, 12
TARGET = np.array([[5, 3, 8, 0], [7, 6, 0, 0]])
SOURCE = np.array([[4, 9, 6, 0, 0], [2, 8, 1, 7, 0]])


def example():
    """x (B, T, C) and memory (B, S, C)."""
    rng = np.random.default_rng(35)
    return random_array(rng, B, T, C), random_array(rng, B, S, C)


def masks():
    """For self-attention and for the memory."""
    return causal_mask(T) & padding_mask(device(TARGET)), padding_mask(device(SOURCE))


@pytest.mark.parametrize("final_norm", [None, False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_is_its_layers_in_order_each_reading_the_same_memory(norm, final_norm):
    decoder = randomize(builder(config(norm=norm, final_norm=final_norm), dtype=np.float64).decoder())
    x, memory = example()
    expected = x
    for layer in decoder.layers:
        expected = layer(expected, memory, *masks())
    normed = final_norm or (final_norm is None and norm == "pre")
    assert (decoder.norm is not None) == normed
    if normed:
        expected = decoder.norm(expected)
    assert relative_error(decoder(x, memory, *masks()), expected) <= 1e-12
