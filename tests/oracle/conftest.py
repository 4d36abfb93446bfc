"""PyTorch computes in one thread."""

import importlib.util

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """On problems as small as these a second thread of PyTorch's only waits, for long on a busy machine."""
    if not importlib.util.find_spec("torch"):
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
