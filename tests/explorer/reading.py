"""What a browser does with data.js, in Python."""

import json
import re

import numpy as np


def read_model(text):
    """The object MODEL that the script defines, with its weights as float64 arrays."""
    (found,) = re.findall(r"^globalThis\.MODEL = (\{\n.*?^\});\n", text, re.DOTALL | re.MULTILINE)
    model = json.loads(found)
    for weights in model["weights"].values():
        for name, rows in weights.items():
            array = np.array(rows, dtype=np.float64)
            weights[name] = array.astype(np.float32).astype(np.float64) if "Math.fround" in text else array
    return model


def assert_up_to_date(committed, written):
    """A file has what the library writes."""
    again = "write it again: python -m minitransformer.explorer"
    assert list(committed) == list(written), again
    for name in set(written) - {"weights"}:
        assert committed[name] == written[name], again
    for kind, weights in written["weights"].items():
        assert list(committed["weights"][kind]) == list(weights)
        for name, array in weights.items():
            assert np.array_equal(committed["weights"][kind][name], array), again


def state_of(weights, layers):
    """The weights as the state of a `Transformer`."""
    state = {"source_embedding.tokens.E": weights["E"]}
    for i in range(layers):
        for stack, kinds in (("encoder", ("self", "ffn")), ("decoder", ("self", "cross", "ffn"))):
            for number, kind in enumerate(kinds, start=1):
                own = f"{stack}{i + 1}" if layers > 1 else stack
                place = "cross" if (kind, layers) == ("cross", 1) else f"{own}.{kind}"
                layer = {"self": "self_attention", "cross": "cross_attention", "ffn": "feed_forward"}[kind]
                prefix = f"{stack}.layers.{i}.{layer}"
                for letter in "Wb":
                    for name, symbols in parts_of(kind):
                        pieces = [weights[f"{place}.{letter}_{symbol}"] for symbol in symbols]
                        state[f"{prefix}.sublayer.{name}.{letter}"] = np.concatenate(pieces, axis=-1)
                for letter in ("gamma", "beta"):
                    state[f"{prefix}.norm.{letter}"] = weights[f"{own}.norm{number}.{letter}"]
    return state


def parts_of(kind):
    """The layers inside a sub-layer, and the symbols of what they hold."""
    if kind == "ffn":
        return (("expand", "1"), ("contract", "2"))
    return (("qkv", "qkv"), ("output", "o")) if kind == "self" else (("q", "q"), ("kv", "kv"), ("output", "o"))
