"""Functions of each entry alone: activations, gates, and the normal distribution."""

import numpy as np

from minitransformer import functional as F
from minitransformer.functional.since_2017.activations import ACTIVATIONS, GATED
from minitransformer.functional.since_2017.erf import normal_cdf, normal_pdf
from tests.precision import definitions
from tests.precision.case import Case
from tests.precision.running import alone, entries


def near_zero(dtype):
    """From the smallest subnormal number to 1e-3, of both signs."""
    info = np.finfo(dtype)
    least = float(info.smallest_subnormal)
    x = np.array([least, 1000 * least, float(info.tiny) / 3, float(info.tiny) * 3, 1e-30, 1e-20, 1e-8, 1e-3])
    return np.concatenate([x, -x])


def both_tails(dtype):
    return np.linspace(-12.3, 12.1, 82)


GROUPS = {
    "near 0": near_zero,
    "-3 to 3": lambda dtype: np.linspace(-2.9, 3.1, 41),
    "3 to 12": lambda dtype: np.linspace(3.1, 12.3, 31),
    "-3 to -12": lambda dtype: -np.linspace(3.1, 12.3, 31),
    "large": lambda dtype: np.array([20.7, 55.3, 80.1, 1e4, 1e10]),
    "large, negative": lambda dtype: -np.array([20.7, 55.3, 80.1, 1e4, 1e10]),
}
PLAIN = {name: getattr(definitions, name) for name in (*ACTIVATIONS, "tanh", "elu_plus_one") if name not in GATED}
WITHOUT_BACKWARD = {
    "erf": (F.erf, definitions.error_function),
    "normal_cdf": (normal_cdf, definitions.cumulative),
    "normal_pdf": (normal_pdf, definitions.density),
}


def one(group):
    return lambda dtype: {"x": group(dtype)}


def gates(group):
    """The group as gates, and values of order one for them to let through."""

    def inputs(dtype):
        gate = group(dtype)
        return {"x": np.concatenate([gate, np.random.default_rng(3).standard_normal(len(gate))])[None]}

    return inputs


ENTRY = ("entry", "entry")
ABSOLUTE = ("one", "one")
ENTRIES = [
    *(
        Case(name, words, one(group), entries(name), define, ENTRY)
        for name, define in PLAIN.items()
        for words, group in GROUPS.items()
    ),
    *(
        Case(name, f"gates {words}", gates(group), entries(name), getattr(definitions, name), ENTRY)
        for name in ("glu", *GATED)
        for words, group in GROUPS.items()
        if words != "near 0"
    ),
    *(
        Case(name, words, one(group), alone(function), define, ENTRY)
        for name, (function, define) in WITHOUT_BACKWARD.items()
        for words, group in GROUPS.items()
    ),
    *(
        Case(name, "-12 to 12, absolute errors", one(both_tails), entries(name), PLAIN[name], ABSOLUTE)
        for name in ("tanh", "gelu", "gelu_tanh")
    ),
    Case(
        "normal_cdf", "-12 to 12, absolute errors", one(both_tails), alone(normal_cdf), definitions.cumulative, ABSOLUTE
    ),
]
