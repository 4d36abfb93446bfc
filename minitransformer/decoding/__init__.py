"""Turning a trained model into sequences."""

from typing import TYPE_CHECKING

from minitransformer.decoding.generate import (
    FilledMasks,
    Generated,
    fill_mask,
    generate,
    generate_tokens,
    greedy_decode,
)
from minitransformer.decoding.rereading import RereadingState, decoding_state
from minitransformer.decoding.sampling import Greedy, Sampling, forbid_repeats, log_softmax
from minitransformer.lazy import importer

if TYPE_CHECKING:
    from minitransformer.decoding.search.beam import Hypothesis, beam_search, length_penalty
    from minitransformer.decoding.search.translate import Translation, find_translations, translate

__all__ = [
    "FilledMasks",
    "Generated",
    "Greedy",
    "Hypothesis",
    "RereadingState",
    "Sampling",
    "Translation",
    "beam_search",
    "decoding_state",
    "fill_mask",
    "find_translations",
    "forbid_repeats",
    "generate",
    "generate_tokens",
    "greedy_decode",
    "length_penalty",
    "log_softmax",
    "translate",
]

__getattr__ = importer(
    __name__,
    __all__,
    (
        "search.beam",
        "search.translate",
    ),
)
