"""Exchanging weights with PyTorch: the state_dict of a `torch.nn.Transformer`, and ours.

Both hold the same numbers under different names and in a different layout: PyTorch stores every matrix transposed,
(out, in), and packs the three input projections of an attention along the first axis. `torch.nn.Transformer` has no
embeddings and no output projection, so only the two stacks are exchanged. This file does not need torch: a tensor is
recognized by its method `detach`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_names
from minitransformer.config import TransformerConfig
from minitransformer.functional.since_2017.activations import GATED

EMBEDDINGS = ("source_embedding.", "target_embedding.", "output.")  # torch.nn.Transformer has none of these


def from_pytorch(state_dict: Mapping[str, Any], config: TransformerConfig) -> dict[str, np.ndarray]:
    """The stacks of a model with `config` from the state_dict of a `torch.nn.Transformer` -> {our name: array}.

    `state_dict` maps PyTorch's names to tensors, or to anything else that `numpy.asarray` accepts. The result has the
    names `encoder.*` and `decoder.*` of `Transformer.state_dict`; its arrays are copies on the host. To merge it with
    the embeddings of a model:

        model.load_state_dict(model.state_dict() | from_pytorch(theirs.state_dict(), model.config))

    `torch.nn.Transformer` always ends both stacks in a LayerNorm: its weights need `final_norm=True`. Its
    `norm_first=True` is our `norm="pre"`. With d_model = C and d_ff = F, for each layer of a stack:

        PyTorch                              ours
        self_attn.in_proj_weight   (3C, C)   self_attention.sublayer.qkv.W      (C, 3C)
        self_attn.out_proj.weight  (C, C)    self_attention.sublayer.output.W   (C, C)
        norm1.weight, norm1.bias   (C,)      self_attention.norm.gamma, .beta   (C,)
        multihead_attn.in_proj_weight        cross_attention.sublayer.q.W       (C, C)       (decoder only)
                                   (3C, C)   cross_attention.sublayer.kv.W      (C, 2C)
        multihead_attn.out_proj.weight       cross_attention.sublayer.output.W  (C, C)
        norm2                                cross_attention.norm               (encoder: feed_forward.norm)
        linear1.weight             (F, C)    feed_forward.sublayer.expand.W     (C, F)
        linear2.weight             (C, F)    feed_forward.sublayer.contract.W   (F, C)
        norm3                                feed_forward.norm

    and for each matrix its bias, and after the stack `norm.weight` and `norm.bias` as `norm.gamma` and `norm.beta`.
    Raises ValueError, naming the tensors, if one is missing or unexpected or has a wrong shape, and for a config that
    `torch.nn.Transformer` cannot represent.
    """
    table = _table(config)
    given = {name: tensor_to_numpy(tensor) for name, tensor in state_dict.items()}
    _check("the PyTorch state", given, {theirs: _their_shape(ours) for theirs, ours in table.items()})
    state: dict[str, np.ndarray] = {}
    for theirs, ours in table.items():
        ends = np.cumsum([shape[-1] for shape in ours.values()])
        pieces = np.split(given[theirs], ends[:-1], axis=0)
        state |= {name: np.array(piece.T, order="C") for name, piece in zip(ours, pieces, strict=True)}
    return state


def to_pytorch(state: Mapping[str, Any], config: TransformerConfig) -> dict[str, np.ndarray]:
    """The inverse of `from_pytorch`: {our name: array} -> {PyTorch's name: array}, as copies on the host.

    `state` is what `Transformer.state_dict` returns; its embeddings, if any, are left out. To load the result:

        theirs.load_state_dict({name: torch.from_numpy(array) for name, array in to_pytorch(...).items()})

    Raises ValueError, naming the tensors, if one is missing or unexpected or has a wrong shape.
    """
    table = _table(config)
    given = {name: tensor_to_numpy(array) for name, array in state.items() if not name.startswith(EMBEDDINGS)}
    _check("the state", given, {name: shape for ours in table.values() for name, shape in ours.items()})
    packed = {theirs: np.concatenate([given[name].T for name in ours], axis=0) for theirs, ours in table.items()}
    return {theirs: np.array(array, order="C") for theirs, array in packed.items()}


def _table(config):
    """{PyTorch's name: {our name: our shape}}; one packed tensor of PyTorch may hold several of our arrays."""
    is_gated, is_other = config.activation in GATED, config.share_layers or config.experts is not None
    if config.normalization != "layer" or is_gated or not config.bias or is_other:
        raise ValueError(
            "torch.nn.Transformer has LayerNorm, biases, no gates and several layers: it has no place for the weights "
            f"of a model with normalization = {config.normalization!r}, activation = {config.activation!r}, "
            f"bias = {config.bias}, share_layers = {config.share_layers}, experts = {config.experts}"
        )
    C, F = config.d_model, config.d_ff
    table = {}
    for stack, layer in (("encoder.", _encoder_layer(C, F)), ("decoder.", _decoder_layer(C, F))):
        for i in range(config.num_layers):
            table |= _under(f"{stack}layers.{i}.", layer)
        if config.has_final_norm:
            table |= _under(stack, _norm("norm.", "norm", C))
    return table


def _encoder_layer(C, F):
    return (
        _linear("self_attn.in_proj_", C, {"self_attention.sublayer.qkv": 3 * C})
        | _linear("self_attn.out_proj.", C, {"self_attention.sublayer.output": C})
        | _norm("norm1.", "self_attention.norm", C)
        | _feed_forward(C, F)
        | _norm("norm2.", "feed_forward.norm", C)
    )


def _decoder_layer(C, F):
    q, kv = "cross_attention.sublayer.q", "cross_attention.sublayer.kv"
    return (
        _linear("self_attn.in_proj_", C, {"self_attention.sublayer.qkv": 3 * C})
        | _linear("self_attn.out_proj.", C, {"self_attention.sublayer.output": C})
        | _norm("norm1.", "self_attention.norm", C)
        | _linear("multihead_attn.in_proj_", C, {q: C, kv: 2 * C})
        | _linear("multihead_attn.out_proj.", C, {"cross_attention.sublayer.output": C})
        | _norm("norm2.", "cross_attention.norm", C)
        | _feed_forward(C, F)
        | _norm("norm3.", "feed_forward.norm", C)
    )


def _feed_forward(C, F):
    expand, contract = "feed_forward.sublayer.expand", "feed_forward.sublayer.contract"
    return _linear("linear1.", C, {expand: F}) | _linear("linear2.", F, {contract: C})


def _linear(theirs, fan_in, fan_outs):
    """A matrix and its bias; `fan_outs` has the width of each of our layers that PyTorch packs into one tensor."""
    return {
        f"{theirs}weight": {f"{ours}.W": (fan_in, fan_out) for ours, fan_out in fan_outs.items()},
        f"{theirs}bias": {f"{ours}.b": (fan_out,) for ours, fan_out in fan_outs.items()},
    }


def _norm(theirs, ours, C):
    return {f"{theirs}weight": {f"{ours}.gamma": (C,)}, f"{theirs}bias": {f"{ours}.beta": (C,)}}


def _under(prefix, table):
    """The same table with `prefix` before all names, theirs and ours."""
    return {prefix + theirs: {prefix + name: shape for name, shape in ours.items()} for theirs, ours in table.items()}


def _their_shape(ours):
    """The shapes of ours transposed (a bias stays as it is) and packed along the first axis."""
    shapes = list(ours.values())
    return (sum(shape[-1] for shape in shapes), *shapes[0][:-1])


def tensor_to_numpy(tensor: Any) -> np.ndarray:
    """A tensor of PyTorch, or an array of any backend, as a NumPy array."""
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else to_host(tensor)


def _check(what, given, shapes):
    check_names(f"{what} does not fit this config", given, shapes)
    for name, shape in shapes.items():
        if given[name].shape != shape:
            raise ValueError(f"{what} has {name} of shape {given[name].shape}, this config needs {shape}")
