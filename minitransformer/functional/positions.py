"""Sinusoidal position vectors (paper section 3.5)."""

import math

import numpy as np


def sinusoidal_positions(length, d_model, dtype=np.float32):
    """A vector for each position, from sines and cosines of geometrically growing wavelengths -> (length, d_model).

    PE[t, 2i] = sin(t / 10000^(2i / d_model))        PE[t, 2i + 1] = cos(t / 10000^(2i / d_model))

    The features 2i and 2i + 1 share one frequency, so PE[t + k] is PE[t] with each such pair turned by a fixed angle,
    and PE[t] . PE[t + k] does not depend on t. Computed in float64 on the host and then cast.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model, got {d_model}")
    pair = np.arange(0, d_model, 2, dtype=np.float64)  # the 2i of the formula
    angles = np.outer(np.arange(length), np.exp(-math.log(10000.0) * pair / d_model))  # (length, d_model / 2)
    table = np.empty((length, d_model), dtype=dtype)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table
