"""Beam search, and translating sentences with it."""
