"""Judging layers of any kind: which derivative to trust, what else a layer promises, and what is wrong with it."""
