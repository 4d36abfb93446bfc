"""Masks are boolean, True = may attend: to what is not padding, and to no later position."""

import numpy as np
import pytest

from minitransformer.functional import causal_mask, padding_mask
from tests.helpers import device, host

IDS = np.array([[5, 3, 0, 0], [7, 0, 2, 1]])


@pytest.mark.parametrize("pad", [0, 7])
def test_padding_mask_allows_just_the_tokens_that_are_not_padding(pad):
    allowed = host(padding_mask(device(IDS), pad))
    assert allowed.shape == (2, 1, 1, 4)
    assert allowed.dtype == bool
    for b, i in np.ndindex(IDS.shape):
        assert allowed[b, 0, 0, i] == (IDS[b, i] != pad)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_causal_mask_allows_itself_and_what_came_before(length):
    allowed = host(causal_mask(length))
    assert allowed.shape == (1, 1, length, length)
    assert allowed.dtype == bool
    for t, i in np.ndindex(length, length):
        assert allowed[0, 0, t, i] == (i <= t)
