"""PyTorch's LSTM and GRU with our parameters: what they make of our inputs, with padding as packed sequences."""

from minitransformer.gradcheck.subjects.recurrent import LAYERS
from tests.oracle import torch_modules

ORDER = {"lstm": (1, 2, 3, 0), "gru": (0, 1, 2)}  # where PyTorch's blocks i, f, g, o and r, z, n are in ours


def blocks(torch, name, array):
    """Our W, U or b (..., blocks R) in PyTorch's layout (blocks R, ...)."""
    parts = array.chunk(len(ORDER[name]), dim=-1)
    return torch.cat([parts[block] for block in ORDER[name]], dim=-1).T


def direction_weights(torch, name, p, suffix):
    """One direction of one layer as the tensors of torch.nn.LSTM or GRU; it has a second bias, of which we need d."""
    b = blocks(torch, name, p["b"][None])[:, 0]
    second = torch.cat([torch.zeros(2 * len(p["d"]), dtype=b.dtype), p["d"]]) if "d" in p else torch.zeros_like(b)
    return {
        f"weight_ih_{suffix}": blocks(torch, name, p["W"]),
        f"weight_hh_{suffix}": blocks(torch, name, p["U"]),
        f"bias_ih_{suffix}": b,
        f"bias_hh_{suffix}": second,
    }


def call(torch, name, module, weights, x, state, mask):
    """y and the final state as one (B, N). PyTorch's state is (layers * directions, B, R)."""
    start = None if not state else state[0] if name == "gru" else state
    if mask is not None:
        lengths = mask.sum(dim=1)
        x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, final = torch_modules.call(torch, module, weights, x, start)
    if mask is not None:
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=mask.shape[1])
    final = (final,) if name == "gru" else final
    return torch.cat([y.flatten(1), *(array.transpose(0, 1).flatten(1) for array in final)], dim=1)


def function(torch, n, switches, p, x, W, U, b, mask=None, d=None, **state):
    name = switches["function"]
    parameters = {"W": W, "U": U, "b": b} | ({} if d is None else {"d": d})
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name](n.C, n.D, batch_first=True, dtype=torch.float64)
    weights = direction_weights(torch, name, parameters, "l0")
    return call(torch, name, module, weights, x, tuple(array[None] for array in state.values()), mask)


def layer(torch, n, switches, p, x, mask=None, **state):
    name, bidirectional = switches["kind"].__name__.lower(), switches["bidirectional"]
    options = {"num_layers": LAYERS, "bidirectional": bidirectional, "batch_first": True, "dtype": torch.float64}
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name](n.C, n.D, **options)
    weights, ways = {}, 1 + bidirectional
    for number in range(LAYERS * ways):
        suffix = f"l{number // ways}{'_reverse' * (number % ways)}"
        weights |= direction_weights(torch, name, torch_modules.under(f"directions.{number}.", p), suffix)
    # ours (B, layers, directions * R), theirs (layers * directions, B, R)
    given = tuple(
        array.unflatten(-1, (ways, n.D)).flatten(1, 2).transpose(0, 1).contiguous() for array in state.values()
    )
    return call(torch, name, module, weights, x, given, mask)
