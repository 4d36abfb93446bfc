"""Layers of papers that came after 2017."""
