"""Where the rows of the table are kept, and the random inputs that they share.

All axes have different lengths, so that no two can be confused: batch B, target T, source S, heads H, features per
head D, features C, inner features D_FF, vocabulary V.
"""

from typing import NamedTuple

import numpy as np

from minitransformer.gradcheck.check import check_gradients, check_layer

B, T, S, H, D, D_FF, V = 4, 5, 7, 2, 3, 8, 11
C = H * D

CASES = {}


class Case(NamedTuple):
    """One row of the table."""

    name: str  # "NAME" or "NAME switch=position ..."
    covers: object  # the public function or class that it proves
    check: object  # (name, **options of check_gradients) -> Report

    def run(self, **options):
        """Do the check -> Report."""
        return self.check(self.name, **options)


def register(name, covers, check):
    """Put one row into the table; `check` takes the name and options, and returns the Report."""
    if name in CASES:
        raise ValueError(f"there is a gradient check called {name!r} already")
    CASES[name] = Case(name, covers, check)


def select_cases(names):
    """The rows whose first word is among `names`, in the order of the table; all for no names.

    Raises ValueError for a name that is not there, with those that are.
    """
    groups = dict.fromkeys(name.split()[0] for name in CASES)
    for name in names:
        if name not in groups:
            raise ValueError(f"there is no gradient check called {name!r}; there are: base, {', '.join(groups)}")
    return [case for case in CASES.values() if not names or case.name.split()[0] in names]


def pair(forward, backward, **inputs):
    """The check of a pair of pure functions, with its differentiable inputs by name."""
    return lambda name, **options: check_gradients(forward, backward, inputs, name=name, **options)


def layer(build, *inputs, **settings):
    """The check of the layer that `build()` makes; inputs and settings as in `check_layer`."""
    return lambda name, **options: check_layer(build(), *inputs, name=name, **{**settings, **options})


def draw(*shape, seed=0):
    """Order-one random input."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def draw_ids(batch, length, padded=False):
    """Token ids (batch, length) with repeats; the first row padded at its end if asked."""
    ids = np.random.default_rng([batch, length]).integers(1, V // 2, size=(batch, length))
    if padded:
        ids[0, length // 2 + 1 :] = 0
    return ids


MASKS = ("none", "padding", "causal", "both", "empty_row")


def mask(kind, t, s):
    """A mask for scores (B, H, t, s), of one of the MASKS; in the last, one query may attend to nothing."""
    padding = np.ones((B, 1, 1, s), bool)
    padding[0, ..., s // 2 + 1 :] = False
    causal = np.tril(np.ones((t, s), bool))[None, None]
    empty_row = np.repeat(padding, t, axis=2)
    empty_row[1, 0, t // 2] = False
    kinds = {"none": None, "padding": padding, "causal": causal, "both": padding & causal, "empty_row": empty_row}
    return kinds[kind]
