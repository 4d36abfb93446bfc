"""One array for all tests of the stand-in, and its copy on the host."""

import numpy as np
import pytest

from tests.strict.strict import strict


@pytest.fixture
def x():
    """(2, 3) in float32, and what NumPy has in its place."""
    return strict.asarray(np.array([[1.0, -2.0, 4.0], [0.5, 8.0, -0.25]], np.float32))


@pytest.fixture
def host(x):
    return x.get()
