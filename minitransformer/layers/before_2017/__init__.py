"""Layers of the models that the Transformer replaced."""
