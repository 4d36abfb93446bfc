"""Turning a trained model into sequences."""

from minitransformer.decoding.greedy import greedy_decode

__all__ = ["greedy_decode"]
