"""Weights go from torch.nn.LSTM and GRU into our layers and back, and both then compute the same."""

import numpy as np
import pytest

from minitransformer.interop.pytorch_recurrent import recurrent_from_pytorch, recurrent_to_pytorch
from minitransformer.layers import GRU, LSTM
from tests.helpers import randomize, relative_error, same

torch = pytest.importorskip("torch")

B, T, I, R, L = 3, 5, 4, 2, 2
pytestmark = pytest.mark.parametrize(
    ("kind", "bidirectional"), [(LSTM, False), (LSTM, True), (GRU, False), (GRU, True)]
)


def pair(kind, bidirectional):
    """Our layers and PyTorch's, with random weights of their own."""
    switches = {"num_layers": L, "bidirectional": bidirectional}
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind.__name__)(I, R, batch_first=True, dtype=torch.float64, **switches)
    return randomize(kind(I, R, dtype=np.float64, **switches)), theirs


def outputs(ours, theirs):
    """(y, h) of both for the same input."""
    x = np.random.default_rng(0).standard_normal((B, T, I))
    (y, state), _ = ours.forward(x)
    their_y, final = theirs(torch.tensor(x))
    h = final if isinstance(final, torch.Tensor) else final[0]  # (L * directions, B, R)
    h = h.unflatten(0, (L, -1)).transpose(1, 2).flatten(2)
    return (y, state[0]), (their_y.detach().numpy(), h.detach().numpy())


def test_weights_of_pytorch_loaded_into_ours_give_the_same_output(kind, bidirectional):
    ours, theirs = pair(kind, bidirectional)
    ours.load_state_dict(recurrent_from_pytorch(theirs.state_dict(), ours))
    for got, expected in zip(*outputs(ours, theirs), strict=True):
        assert relative_error(got, expected) <= 1e-14


def test_our_weights_loaded_into_pytorch_give_the_same_output_and_come_back_as_they_were(kind, bidirectional):
    ours, theirs = pair(kind, bidirectional)
    state = recurrent_to_pytorch(ours)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()}, strict=True)
    for got, expected in zip(*outputs(ours, theirs), strict=True):
        assert relative_error(got, expected) <= 1e-14
    again = recurrent_from_pytorch(theirs.state_dict(), ours)
    assert again.keys() == ours.state_dict().keys()
    assert all(same(again[name], array) for name, array in ours.state_dict().items())
