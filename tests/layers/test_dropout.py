"""The Dropout layer applies its rate with the generator given, is the identity without one, and checks the rate."""

import numpy as np
import pytest

from minitransformer.functional import dropout
from minitransformer.layers import Dropout
from minitransformer.system.generators import make_generator
from tests.helpers import random_array, same


def example():
    return random_array(np.random.default_rng(22), 2, 4, 5)


def test_dropout_layer_is_dropout_at_its_rate():
    y = Dropout(0.4)(example(), make_generator(0))
    assert same(y, dropout(example(), 0.4, make_generator(0))[0])
    assert (y == 0).any()


def test_dropout_layer_without_a_generator_does_not_scale():
    x = example()
    assert Dropout(0.4)(x) is x


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_a_rate_outside_0_to_1_is_refused(rate):
    with pytest.raises(ValueError, match=f"dropout rate must be at least 0 and less than 1, got {rate}"):
        Dropout(rate)
