"""Turning a trained model into sequences."""

from typing import TYPE_CHECKING

from minitransformer.decoding.generate import (
    Generated,
    Greedy,
    forbid_repeats,
    generate_from,
    generate_tokens,
    greedy_decode,
    log_softmax,
)
from minitransformer.decoding.rereading import RereadingState, decoding_state
from minitransformer.decoding.sampling import Sampling, SlidingState, generate
from minitransformer.lazy import importer

if TYPE_CHECKING:
    from minitransformer.decoding.masked import FilledMasks, fill_mask
    from minitransformer.decoding.search.beam import Hypothesis, beam_search, length_penalty
    from minitransformer.decoding.search.translate import Translation, find_translations, translate

__all__ = [
    "FilledMasks",
    "Generated",
    "Greedy",
    "Hypothesis",
    "RereadingState",
    "Sampling",
    "SlidingState",
    "Translation",
    "beam_search",
    "decoding_state",
    "fill_mask",
    "find_translations",
    "forbid_repeats",
    "generate",
    "generate_from",
    "generate_tokens",
    "greedy_decode",
    "length_penalty",
    "log_softmax",
    "translate",
]

__getattr__ = importer(
    __name__,
    __all__,
    ("masked", "search.beam", "search.translate"),
)
