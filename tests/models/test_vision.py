"""A ViT reads the patches of an image: each pixel in its place, wherever the image has it."""

import math

import numpy as np
import pytest

from minitransformer.models import ViT, bert_config
from minitransformer.models.since_2017.vision import Patches
from tests.helpers import host, randomize, relative_error, same

LEVELS, P, n, C, CLASSES = 11, 9, 4, 12, 5  # 2 x 2 patches of 3 x 3 pixels
PIXELS = np.random.default_rng(0).integers(1, LEVELS, (3, n * P))


def build(dtype="float64", **changes):
    """A model with its initial weights."""
    sizes = {"d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 1 + n, "norm": "pre"}
    return ViT(bert_config(LEVELS, **{**sizes, **changes}), num_classes=CLASSES, patch_size=P, dtype=dtype)


def build_random():
    """A model with order-one weights."""
    return randomize(build(), scale=0.4)


def patch_of(row, column):
    """The patch that has a pixel of an image of 6 x 6, and the pixel's place in it, both counted row by row."""
    return 2 * (row // 3) + column // 3, 3 * (row % 3) + column % 3


def test_patches_are_cut_and_projected_as_loops_do_it():
    layer = randomize(Patches(P, C, LEVELS, None, "float64"))
    W, b = host(layer.W.data), host(layer.b.data)
    expected = np.zeros((3, 1 + n, C)) + b
    for i in range(3):
        for row in range(6):
            for column in range(6):
                patch, place = patch_of(row, column)
                for c in range(C):
                    expected[i, 1 + patch, c] += PIXELS[i, 6 * row + column] / LEVELS * W[place, c]
    assert relative_error(host(layer(PIXELS)), expected) <= 1e-14


@pytest.mark.parametrize("pixel", range(0, n * P, 15))
def test_a_pixel_changes_the_vector_of_its_own_patch_alone_and_all_logits(pixel):
    model, other = build_random(), PIXELS.copy()
    other[1, pixel] = 1 + other[1, pixel] % (LEVELS - 1)
    before, after = (host(model.embedding.tokens(pixels)) for pixels in (PIXELS, other))
    changed = (before != after).any(axis=-1)
    assert changed.sum() == 1
    assert changed[1, 1 + patch_of(*divmod(pixel, 6))[0]]
    logits, moved = (host(model(pixels)) for pixels in (PIXELS, other))
    assert (logits[1] != moved[1]).all()
    assert same(logits[[0, 2]], moved[[0, 2]])


def test_dark_pixels_are_read_like_light_ones_and_none_counts_as_padding():
    model, dark = build_random(), np.full((1, n * P), LEVELS - 1)
    dark[0, :P] = 0
    weights = host(model.attention_weights(dark)[0])
    assert weights.shape == (1, 3, 1 + n, 1 + n)
    assert (weights > 0).all()


def test_weights_begin_as_those_of_a_linear_layer_and_depend_on_the_seed():
    config = build().config
    seeds = ({"seed": 0}, {}, {"seed": 1})
    first, same_seed, other = (ViT(config, num_classes=CLASSES, patch_size=P, **seed) for seed in seeds)
    W = host(first.embedding.tokens.W.data)
    assert 0.5 < np.abs(W).max() / math.sqrt(6 / (P + C)) <= 1
    assert same(W, same_seed.embedding.tokens.W.data)
    assert (host(other.embedding.tokens.W.data) != W).all()


@pytest.mark.parametrize(
    ("pixels", "error", "message"),
    [
        (PIXELS[:, 1:], ValueError, r"pixels must be of shape \(3, 36\), got \(3, 35\)"),
        (PIXELS.reshape(3, 6, 6), ValueError, r"pixels must be of shape \(3, 36\), got \(3, 6, 6\)"),
        (PIXELS + LEVELS, IndexError, "pixels has the token id"),
        (PIXELS / LEVELS, TypeError, "pixels must be integer"),
    ],
)
def test_pixels_that_are_no_image_are_refused(pixels, error, message):
    with pytest.raises(error, match=message):
        build()(pixels)
