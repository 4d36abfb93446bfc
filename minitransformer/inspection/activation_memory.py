"""Activation memory: the arrays that a training step keeps between forward and backward, found in its caches."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import use_backend
from minitransformer.config import Seq2SeqConfig, TransformerConfig
from minitransformer.core import Layer, Parameter
from minitransformer.layers.since_2017.attention_kinds import CausalAttention, TiledAttention, in_tiles
from minitransformer.layers.since_2017.recompute import recomputed
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.transformer import Transformer

# lengths of a small model to try, chosen so that each length, and each product or sum below, identifies its letters
SMALL = {"B": 2, "S": 3, "T": 19, "H": 7, "G": 7, "D": 22, "F": 13, "V": 17, "L": 29}
SMALL_D_K, SMALL_C = 18, 202
SMALL_E = 31  # experts, all of which get every token of the small model


class Kept(NamedTuple):
    """An array that some cache holds."""

    name: str  # the path to it through the caches
    letters: tuple[str, ...]  # its shape in letters, such as ("B", "T", "3C")
    shape: tuple[int, ...]  # its shape in numbers
    dtype: str
    bytes: int  # of one such array
    count: int  # type: ignore[assignment]  # the number of layers that keep such an array (hides tuple.count)


def kept_activations(
    config: TransformerConfig,
    batch: int,
    source_length: int,
    target_length: int,
    kind: type[Layer] = Transformer,
    recompute: bool = False,
) -> list[Kept]:
    """The arrays that one float32 training step of a model for `config` keeps, in the order of forward -> list of Kept.

    `kind` is the model's class; GPT and BERT read only the target. The function runs one step, with dropout, of a model
    with the same layers and switches but small, distinct sizes, walks its caches, and replaces the lengths in their
    shapes by the real ones. Parameters do not count, and an array that two caches share counts once. The layers of a
    stack are one row, `layers.*`; with `recompute` they are `Recomputed`. The step always runs on NumPy, where the
    owner of an array's memory is known.
    """
    real = _with_products({**_real_sizes(config), "B": batch, "S": source_length, "T": target_length})
    letters_of = {length: letters for letters, length in _with_products(_small_sizes(config)).items()}
    rows: dict[str, Kept] = {}
    tiles = in_tiles(target_length)  # on the backend of the caller
    with use_backend("numpy"):
        step = _small_step(config, kind, recompute, tiles)
    for name, array in _distinct_arrays(step):
        letters = tuple("1" if length == 1 else letters_of[length] for length in array.shape)
        shape = tuple(1 if letter == "1" else real[letter] for letter in letters)
        itemsize = 4 if array.dtype.kind == "f" else array.dtype.itemsize
        dtype = "float32" if array.dtype.kind == "f" else str(array.dtype)
        row = Kept(re.sub(r"(layers|used)\.\d+", r"\1.*", name), letters, shape, dtype, itemsize * math.prod(shape), 1)
        count = rows[row.name].count if row.name in rows else 0
        rows[row.name] = row._replace(count=count + 1)
    active = (
        config.experts.per_token if config.experts else 1
    )  # each token is kept by as many experts, so that many keep all
    return [row._replace(count=row.count * active // SMALL_E) if ".used." in row.name else row for row in rows.values()]


def count_parameters(config: TransformerConfig | Seq2SeqConfig, kind: type[Layer] = Transformer) -> int:
    """The number of learned numbers of a model for `config`, without making that model.

    The parameters of a small model are counted, with the lengths in their shapes replaced by the real ones. With
    experts, and of a recurrent model, it is the model itself, whose weights are zeros.
    """
    if isinstance(config, Seq2SeqConfig) or config.experts:
        kind = Seq2Seq if isinstance(config, Seq2SeqConfig) else kind
        with use_backend("numpy"):
            return kind(config, seed=None).num_parameters()  # type: ignore[call-arg]
    sizes = _real_sizes(config), _small_sizes(config)
    real, small = (_with_products({**lengths, "B": 0, "S": 0, "T": 0}) for lengths in sizes)
    real_of = {length: real[letters] for letters, length in small.items() if length}
    with use_backend("numpy"):
        parameters = _small_model(config, kind).parameters()
    return sum(math.prod(real_of.get(length, length) for length in parameter.data.shape) for parameter in parameters)


def _real_sizes(config):
    H, G, D = config.num_heads, config.num_kv_heads or config.num_heads, config.head_widths[1]
    sizes = {"H": H, "G": G, "D": D, "F": config.d_ff, "V": config.vocab_size, "L": config.max_len}
    sizes |= {"K": config.head_widths[0]} if config.d_k or config.d_v else {}
    sizes |= {"E": config.experts.count} if config.experts else {}
    return sizes | ({"C": config.d_model} if config.d_v else {})


def _small_sizes(config):
    """SMALL, with as many key heads as heads, with one, or with a group of three heads for each, as `config` has."""
    heads = {None: SMALL["H"], config.num_heads: SMALL["H"], 1: 1}.get(config.num_kv_heads)
    sizes = {**SMALL, "G": heads} if heads else {**SMALL, "H": 3 * SMALL["G"]}
    d_k = sizes["D"] if config.head_widths[0] == config.head_widths[1] else SMALL_D_K
    sizes |= {"K": d_k} if config.d_k or config.d_v else {}
    sizes |= {"E": SMALL_E} if config.experts else {}
    return sizes | ({"C": SMALL_C} if config.d_v else {})


def _with_products(lengths):
    """The lengths, and what is made of them: C = H D, 2C, 3C, 2F, D/2, the flattened B T and B S, and others.

    A bias by distance has one number for each of the 2T - 1 distances between T tokens.

    Of two names for the same length, the later one counts: the features of all keys, G D, are C without groups.
    """
    G, D = lengths["G"], lengths["D"]
    HD = lengths["H"] * D
    C = lengths.get("C", HD)
    made = {
        "G": G,
        "GD": G * D,
        "2GD": 2 * G * D,
        "HD+2GD": HD + 2 * G * D,
        "C+2GD": C + 2 * G * D,
        "D+1": D + 1,
        "HD": HD,
        "3HD": 3 * HD,
        "C": C,
        "2C": 2 * C,
        "3C": 3 * C,
        "2F": 2 * lengths["F"],
        "D/2": lengths["D"] // 2,
        "BT": lengths["B"] * lengths["T"],
        "BS": lengths["B"] * lengths["S"],
        "2T-1": 2 * lengths["T"] - 1,
        "2S-1": 2 * lengths["S"] - 1,
    }
    if "K" in lengths:  # d_k
        queries, keys = lengths["H"] * lengths["K"], G * lengths["K"]
        made |= {"K/2": lengths["K"] // 2, "HK": queries, "GK+GD": keys + G * D, "HK+GK+GD": queries + keys + G * D}
    return {**made, **{letter: length for letter, length in lengths.items() if letter != "G"}}


def _small_model(config: TransformerConfig, kind: type[Any]) -> Any:
    P = _small_sizes(config)
    sizes = {"vocab_size": P["V"], "d_model": P.get("C", P["H"] * P["D"]), "d_ff": P["F"], "max_len": P["L"]}
    heads = {"num_heads": P["H"], "num_kv_heads": config.num_kv_heads and P["G"], "d_v": config.d_v and P["D"]}
    experts = config.experts and dataclasses.replace(config.experts, count=SMALL_E, per_token=SMALL_E)
    options = {"d_k": P.get("K"), "experts": experts, "padding": 0, "start": 1}  # ids that every vocabulary has
    return kind(dataclasses.replace(config, **sizes, **heads, **options), seed=None)


def _small_step(
    config: TransformerConfig, kind: type[Layer], recompute: bool, tiles: bool
) -> tuple[list[Parameter], dict[str, Any]]:
    """The parameters of a small model with the same layers, and what it keeps when the loss is computed.

    Logits are not kept: `blockwise_loss` makes and drops them a block at a time. With `tiles`, causal attention is in
    tiles, as that to a long target is.
    """
    model = _small_model(config, kind)
    if tiles:
        _put_in_tiles(model)
    model = recomputed(model) if recompute else model
    source, target = (np.ones((SMALL["B"], SMALL[letter]), int) for letter in "ST")
    source[0, -1] = target[0, -1] = 0  # padding
    inputs = (source, target) if kind is Transformer else (target,)
    y, cache = model.features(*inputs, rng=np.random.default_rng(0))
    return model.parameters(), {"model": cache, "features": y}


def _put_in_tiles(layer):
    """Let causal attention, here and inside, compute tiles at any length."""
    if isinstance(getattr(layer, "kind", None), CausalAttention):
        layer.kind = TiledAttention(layer.kind.pattern)
    for _, child in layer.children():
        _put_in_tiles(child)


def _distinct_arrays(step: tuple[list[Parameter], dict[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array), once for each block of memory in the caches that is not a parameter."""
    parameters, caches = step
    seen = {_memory(parameter.data) for parameter in parameters}
    for name, array in itertools.chain.from_iterable(_walk(cache, key) for key, cache in caches.items()):
        if _memory(array) not in seen:
            seen.add(_memory(array))
            yield name, _owner(array)


def _owner(array):
    """The array that owns the memory of a view: a view keeps all of it alive."""
    while array.base is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _memory(array):
    return _owner(array).__array_interface__["data"][0]


def _walk(cache, name):
    """(name, array) for each array in a cache, which is an array, a tuple or list of caches, or something small."""
    if isinstance(cache, np.ndarray):
        yield name, cache
    elif isinstance(cache, (tuple, list)):
        fields = getattr(cache, "_fields", range(len(cache)))
        for field, part in zip(fields, cache, strict=True):
            yield from _walk(part, f"{name}.{field}")
