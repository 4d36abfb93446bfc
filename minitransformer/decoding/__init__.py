"""Turning a trained model into sequences."""

from minitransformer.decoding.beam import Hypothesis, beam_search, length_penalty
from minitransformer.decoding.choosing import Greedy, Sampling, forbid_repeats, log_softmax
from minitransformer.decoding.generate import Generated, generate, generate_tokens
from minitransformer.decoding.greedy import exact_match, greedy_decode
from minitransformer.decoding.score import decode_and_score

__all__ = [
    "Generated",
    "Greedy",
    "Hypothesis",
    "Sampling",
    "beam_search",
    "decode_and_score",
    "exact_match",
    "forbid_repeats",
    "generate",
    "generate_tokens",
    "greedy_decode",
    "length_penalty",
    "log_softmax",
]
