"""Turning a trained model into sequences."""

from minitransformer.decoding.greedy import exact_match, greedy_decode

__all__ = ["exact_match", "greedy_decode"]
