"""A generator whose numbers hypothesis draws, so that it can find the smallest case that fails."""

import numpy as np
from hypothesis import strategies as st


class Drawn:
    """What the targets use of numpy.random.Generator."""

    def __init__(self, data):
        self.data = data

    def integers(self, low, high=None, size=None):
        """From `low` to `high` - 1, or from 0 to `low` - 1."""
        low, high = (0, int(low)) if high is None else (int(low), int(high))
        numbers = st.integers(low, high - 1)
        if size is None:
            return self.data.draw(numbers)
        return np.array(self.data.draw(st.lists(numbers, min_size=size, max_size=size)), dtype=np.int64)

    def random(self):
        """From 0 to 1."""
        return self.data.draw(st.floats(0.0, 1.0, exclude_max=True))

    def bytes(self, length):
        """So many of them."""
        return self.data.draw(st.binary(min_size=length, max_size=length))
