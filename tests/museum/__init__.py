"""Bugs that were really published, each planted in this library: history, with its source, and a lesson in each."""

# Six public NumPy Transformers with hand-written backward passes were read for lesson 15; five of them had bugs.
NUMPY = "one of the six NumPy Transformers of lesson 15"
