"""Experiments that compare models with each other. One file per experiment, with NAME, DESCRIPTION, SECONDS and run."""
