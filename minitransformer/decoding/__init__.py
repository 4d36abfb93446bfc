"""Turning a trained model into sequences."""

from minitransformer.decoding.greedy import exact_match, greedy_decode
from minitransformer.decoding.score import decode_and_score

__all__ = ["decode_and_score", "exact_match", "greedy_decode"]
