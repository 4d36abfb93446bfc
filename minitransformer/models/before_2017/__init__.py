"""The models that the Transformer replaced."""
