"""The museum of wrong gradients: bugs that were published, all of which the tests must catch."""

from minitransformer.course import FOLDER
from minitransformer.exercises.exercise import load
from tests.museum import (
    NUMPY,
    exhibits_decoding,
    exhibits_functions,
    exhibits_layers,
    exhibits_preferences,
    exhibits_training,
)

PATIENTS = load(FOLDER / "patients.py").PATIENTS  # of lesson 15
SOURCES = {  # of those that were published
    "LayerNorm's gamma is taken outside the sums": "ellatrix/micrograd",
    "a token that comes twice gets only one of its gradients": "pytorch/pytorch #1528",
    "heads are split and merged by a reshape alone": "reczoo/FuxiCTR #30",
    "the causal mask is off by default": "facebookresearch/xformers #103",
    "the exponent of the positions counts pairs twice": "Kyubyong/transformer #38",
    "the keys' gradient is computed transposed and then reshaped into place": NUMPY,
    "the residual's gradient is never added around cross-attention": NUMPY,
    "the target is not shifted": "Project-MONAI/GenerativeModels #314",
}
EXHIBITS = (
    *(patient._replace(source=SOURCES[patient.name]) for patient in PATIENTS if patient.name in SOURCES),
    *exhibits_functions.EXHIBITS,
    *exhibits_preferences.EXHIBITS,
    *exhibits_layers.EXHIBITS,
    *exhibits_decoding.EXHIBITS,
    *exhibits_training.EXHIBITS,
)
