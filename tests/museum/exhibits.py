"""The museum of wrong gradients: every bug that the tests must catch, and the few changes that nobody could."""

from minitransformer import functional as F
from minitransformer.course import FOLDER
from minitransformer.exercises.exercise import load
from minitransformer.exercises.planting import Exhibit
from minitransformer.functional.layer_norm import _layer_norm_backward
from tests.museum import (
    exhibits_anomaly,
    exhibits_attention,
    exhibits_attention_kinds,
    exhibits_convolution,
    exhibits_decoding,
    exhibits_extremes,
    exhibits_family,
    exhibits_folded,
    exhibits_functions,
    exhibits_incremental,
    exhibits_kernels,
    exhibits_layers,
    exhibits_load,
    exhibits_models,
    exhibits_pairs,
    exhibits_positions,
    exhibits_processes,
    exhibits_ranks,
    exhibits_recurrent,
    exhibits_seq2seq,
    exhibits_sharded,
    exhibits_training,
    exhibits_workers,
)

PATIENTS = load(FOLDER / "patients.py").PATIENTS  # of lesson 15
EXHIBITS = (
    *PATIENTS,
    *exhibits_anomaly.EXHIBITS,
    *exhibits_attention.EXHIBITS,
    *exhibits_attention_kinds.EXHIBITS,
    *exhibits_convolution.EXHIBITS,
    *exhibits_decoding.EXHIBITS,
    *exhibits_extremes.EXHIBITS,
    *exhibits_family.EXHIBITS,
    *exhibits_folded.EXHIBITS,
    *exhibits_functions.EXHIBITS,
    *exhibits_incremental.EXHIBITS,
    *exhibits_kernels.EXHIBITS,
    *exhibits_layers.EXHIBITS,
    *exhibits_load.EXHIBITS,
    *exhibits_models.EXHIBITS,
    *exhibits_pairs.EXHIBITS,
    *exhibits_positions.EXHIBITS,
    *exhibits_processes.EXHIBITS,
    *exhibits_ranks.EXHIBITS,
    *exhibits_recurrent.EXHIBITS,
    *exhibits_seq2seq.EXHIBITS,
    *exhibits_sharded.EXHIBITS,
    *exhibits_training.EXHIBITS,
    *exhibits_workers.EXHIBITS,
)

# They look like bugs, or like repairs, and change nothing but the last bit: no test can catch them, and none should.
EQUIVALENT = (
    Exhibit(
        "the keys' gradient is centred over the positions",
        "Its sum over them is exactly 0: one vector added to all keys changes no weight. So the key bias has none.",
        F.scaled_dot_product_attention_backward,
        "repeat_heads_backward(dk, groups)",
        # not that of keys that no query sees, which is exactly 0
        "repeat_heads_backward(dk - dk.mean(axis=-2, keepdims=True) * (dk != 0.0), groups)",
    ),
    Exhibit(
        "the scale is on the keys instead of the queries",
        "A factor of a product may stand on either side of it.",
        F.scaled_dot_product_attention,
        "scores = q @ k.swapaxes(-1, -2)",
        "scores = (q * math.sqrt(D)) @ (k / math.sqrt(D)).swapaxes(-1, -2)",
    ),
    Exhibit(
        "ReLU remembers its input instead of its output",
        "One is positive just where the other is.",
        F.relu,
        "return y, y",
        "return y, x",
    ),
    Exhibit(
        "LayerNorm's variance also passes its gradient on to the mean",
        "d(variance)/d(mean) is a mean of deviations from the mean: 0.",
        _layer_norm_backward,
        "dx -= x_hat * through_std",
        "dx -= (x_hat - x_hat.mean(axis=-1, keepdims=True)) * through_std",
    ),
    Exhibit(
        "the gradient of the scores is computed from all scores less the largest",
        "The shift by the largest score cancels in p, so that it depends on the scores has no gradient.",
        F.softmax_backward,
        "ds *= p",
        "ds *= p\n    ds -= ds.sum(axis=-1, keepdims=True) * (p == p.max(axis=-1, keepdims=True))",
    ),
)
