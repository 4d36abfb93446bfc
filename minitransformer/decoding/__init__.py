"""Turning a trained model into sequences."""

from minitransformer.decoding.beam import Hypothesis, beam_search, length_penalty
from minitransformer.decoding.generate import Generated, generate, generate_tokens
from minitransformer.decoding.greedy import greedy_decode
from minitransformer.decoding.masks import FilledMasks, fill_mask
from minitransformer.decoding.sampling import Greedy, Sampling, forbid_repeats, log_softmax

__all__ = [
    "FilledMasks",
    "Generated",
    "Greedy",
    "Hypothesis",
    "Sampling",
    "beam_search",
    "fill_mask",
    "forbid_repeats",
    "generate",
    "generate_tokens",
    "greedy_decode",
    "length_penalty",
    "log_softmax",
]
