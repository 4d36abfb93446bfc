"""Averages of the weights, checkpoints, and the folder of a run."""
