"""The museum of wrong gradients: bugs that were published, all of which the tests must catch."""

from minitransformer.course import FOLDER
from minitransformer.exercises.exercise import load
from minitransformer.exercises.known import known
from tests.museum import (
    NUMPY,
    exhibits_decoding,
    exhibits_functions,
    exhibits_layers,
    exhibits_preferences,
    exhibits_training,
)
from tests.museum.planting import Exhibit

PATIENTS = tuple(Exhibit(*patient) for patient in load(FOLDER / "support" / "patients.py").PATIENTS)  # of lesson 15
SOURCES = {  # of those that were published, by their ids in the list of known mistakes
    "gamma-outside-sums": "ellatrix/micrograd",
    "token-twice": "pytorch/pytorch #1528",
    "heads-reshaped": "reczoo/FuxiCTR #30",
    "causal-mask-off": "facebookresearch/xformers #103",
    "pairs-counted-twice": "Kyubyong/transformer #38",
    "keys-reshaped": NUMPY,
    "residual-forgotten": NUMPY,
    "target-not-shifted": "Project-MONAI/GenerativeModels #314",
}
PUBLISHED = {known(id).name: source for id, source in SOURCES.items()}
EXHIBITS = (
    *(patient._replace(source=PUBLISHED[patient.name]) for patient in PATIENTS if patient.name in PUBLISHED),
    *exhibits_functions.EXHIBITS,
    *exhibits_preferences.EXHIBITS,
    *exhibits_layers.EXHIBITS,
    *exhibits_decoding.EXHIBITS,
    *exhibits_training.EXHIBITS,
)
