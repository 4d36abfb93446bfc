"""Turning a trained model into sequences."""

from minitransformer.decoding.beam import Hypothesis, beam_search, length_penalty
from minitransformer.decoding.generate import Generated, generate, generate_tokens
from minitransformer.decoding.greedy import greedy_decode
from minitransformer.decoding.masks import FilledMasks, fill_mask
from minitransformer.decoding.sampling import Greedy, Sampling, forbid_repeats, log_softmax
from minitransformer.decoding.translate import Translation, find_translations, translate

__all__ = [
    "FilledMasks",
    "Generated",
    "Greedy",
    "Hypothesis",
    "Sampling",
    "Translation",
    "beam_search",
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
