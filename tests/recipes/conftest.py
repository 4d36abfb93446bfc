"""Recipes leave their figures undrawn, as in the tests of the command line, except in tests with the marker `draws`."""

from tests.cli.conftest import undrawn

__all__ = ["undrawn"]
