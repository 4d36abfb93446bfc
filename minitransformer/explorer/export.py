"""A model as the data of the page: its weights by the names of the lessons, and what it reads and writes.

The page reads `data.js`, a script that defines one object, MODEL. In Python it is a dictionary with the same names:

    title          str, such as "stop → pots"
    task           the toy task whose right answers the page knows (tasks.js), such as "reverse", or None
    sizes          {"C", "H", "D", "F", "V", "layers"} and the shape: {"kind": "transformer" or "gpt",
                   "norm": "post" or "pre", "positions": "sinusoidal", "learned", "rope" or "none"}
    norm_eps       float, inside the root of LayerNorm
    tokens         the names of the V tokens in the order of their ids, beginning with pad, bos and eos
    separator      what stands between the tokens of a typed source: nothing, or a space
    source_end     the ids that follow every source: [2] where sources end with eos, or []
    source         ids (S,), without source_end
    target         ids (T - 1,), without bos and eos
    answer         "given" if the target was given, or "model" if it is what the model writes
    max_length     the longest source and target that can be typed, without these
    weights        {"trained": {name: array}, "untrained": {name: array}}; without the second, the page draws its own
    example        whether this is the running example

The names of the weights are those of `minitransformer.example.names`. In a model with more than one layer the number
of the layer follows the stack, as in "encoder2.self.W_q" and "decoder1.cross.W_q". The layers of a GPT are those of a
decoder. Of learned positions P there are max_length + 4 rows, for eos and up to three tokens of padding, and twice as
many for a GPT, which reads source and target as one sequence.
"""

import json
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import use_backend
from minitransformer.config import OWN_IDS, flat_fields
from minitransformer.decoding import greedy_decode
from minitransformer.example import load_example
from minitransformer.example.model import WORD
from minitransformer.example.names import named_weights
from minitransformer.explorer.writing import Writing, example_writing
from minitransformer.models import Transformer
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.system.files import atomic_write

LARGEST = 255_000  # weights: data.js has 19.5 bytes for each of them, so it stays below 5 MB
LONGEST = 16  # tokens of a source or a target: more do not fit on the page
MORE = 4  # positions after the longest source: eos, and three tokens of padding
EXAMPLE_LONGEST = 8  # letters; the model has learned words of up to 4
DECIMALS = 4  # of untrained weights
SHOWN = {  # fields of the configuration, and the values that the page shows
    "attention": ("full",),
    "positions": ("sinusoidal", "learned", "rope", "none"),
    "normalization": ("layer",),
    "activation": ("relu",),
    "bias": (True,),
    "tie_embeddings": (True,),
    "scale_embeddings": (True,),
    "scale_scores": (True,),
    "scale_output": (False,),
    **{name: (getattr(OWN_IDS, name),) for name in ("padding", "start", "end")},
    "share_layers": (False,),
    "num_experts": (None,),
    "norm": ("post", "pre"),
    "d_k": (None,),
    "d_v": (None,),
    "qk_norm": (False,),
    "qkv_bias": (None,),
    "rope_base": (10000.0,),
    "rope_factor": (1.0,),
}
HEAD = "// The model of this page, written by minitransformer.explorer.\n"
ROUND = """\
{
  // These weights are float32. They are written with the digits that float32 needs, and get their exact values here.
  const exact = (x) => (Array.isArray(x) ? x.map(exact) : Math.fround(x));
  for (const weights of Object.values(MODEL.weights)) {
    for (const name of Object.keys(weights)) weights[name] = exact(weights[name]);
  }
}
"""
LINE = re.compile(r".{1,118}(?:,|$)")

Data = dict[str, Any]


def check_model(model: Any) -> None:
    """ValueError unless the page can show `model`: a small Transformer or GPT of a known shape, with finite weights."""
    if not isinstance(model, (Transformer, GPT)):
        raise ValueError(f"the explorer shows Transformers and GPTs, and this model is a {type(model).__name__}")
    config, count = model.config, model.num_parameters()
    has = {**flat_fields(config), "final_norm": config.has_final_norm}
    has["num_kv_heads"] = config.num_kv_heads or config.num_heads
    needed = {**SHOWN, "final_norm": (config.norm == "pre",), "num_kv_heads": (config.num_heads,)}
    for name, values in needed.items():
        if has.get(name, values[0]) not in values:
            allowed = " or ".join(map(str, values))
            raise ValueError(
                f"the explorer shows models with {name} = {allowed}, and this model has {name} = {has[name]}"
            )
    if count > LARGEST:
        raise ValueError(f"the explorer shows models of at most {LARGEST:,} weights, and this model has {count:,}")
    if not all(np.isfinite(array).all() for array in model.state_dict().values()):
        raise ValueError("the explorer shows finite numbers, and this model has weights that are not finite")


def example_data(word: str = WORD, answer: str | None = None) -> Data:
    """MODEL for the running example. The answer is the reversed word unless another is given.

    It is computed on the host, whichever backend is in use, because its numbers are there. Raises ValueError for other
    letters than o, p, s and t, and for too many of them.
    """
    with use_backend("numpy"):
        return _example_data(word, answer)


def _example_data(word, answer):
    example, writing = load_example(), example_writing()
    source = writing.encode(word)
    target = source[::-1] if answer is None else writing.encode(answer)
    check_lengths(source, target, EXAMPLE_LONGEST)
    return {**_data(example.model, writing, source, target, EXAMPLE_LONGEST), "example": True}


def model_data(
    model: Any, writing: Writing, source: Sequence[int], target: Sequence[int] | None = None, seed: int = 0
) -> Data:
    """MODEL for any Transformer or GPT that `check_model` lets pass.

    source (S,) and target (T - 1,) are ids without bos, eos and padding; a target of None is what the model writes with
    greedy decoding. `writing` has the names of the tokens. The untrained weights are the initial ones of `seed`,
    rounded to four decimals. Raises ValueError as `check_model` does, and for tokens that are not the model's or too
    many for the page.
    """
    check_model(model)
    config = model.config
    if len(writing.tokens) != config.vocab_size:
        raise ValueError(f"there are names of {len(writing.tokens)} tokens, and the model has {config.vocab_size}")
    most = min(
        LONGEST, config.max_len - 1 if isinstance(model, Transformer) else (config.max_len - len(writing.end)) // 2
    )
    check_lengths(source, target or (), most)
    answer = "model" if target is None else "given"
    if target is None:
        ids = greedy_decode(model, np.array([[*source, *writing.end]]), most + 1)[0].tolist()
        target = [id for id in ids if id not in config.special][:most]
    data = _data(model, writing, source, target, most, answer)
    initial = _weights(type(model)(config, seed=seed, dtype=model.output.E.data.dtype), most)
    data["weights"]["untrained"] = {name: array.round(DECIMALS) for name, array in initial.items()}  # others would do
    return data


def check_lengths(source: Sequence[int], target: Sequence[int], most: int) -> None:
    """ValueError unless the page has a place for so many tokens. A target may be empty."""
    for name, ids, least in (("source", source, 1), ("target", target, 0)):
        if not least <= len(ids) <= most:
            raise ValueError(f"the {name} has {len(ids)} tokens, and the explorer shows from {least} to {most}")


def _data(model, writing, source, target, most, answer="given"):
    config = model.config
    return {
        "title": f"{writing.text(source)} → {writing.text(target)}",
        "task": writing.task,
        "sizes": sizes_of(model),
        "norm_eps": config.norm_eps,
        "tokens": list(writing.tokens),
        "separator": writing.separator,
        "source_end": list(writing.end),
        "answer": answer,
        "source": [int(id) for id in source],
        "target": [int(id) for id in target],
        "max_length": most,
        "weights": {"trained": _weights(model, most)},
        "example": False,
    }


def _weights(model, most):
    rows = (most + MORE) * (1 if isinstance(model, Transformer) else 2)
    return {name: array[:rows] if name.endswith(".P") else array for name, array in named_weights(model).items()}


def sizes_of(model: Any) -> dict[str, Any]:
    """The sizes and the shape of a model."""
    config = model.config
    C, H = config.d_model, config.num_heads
    sizes = {"C": C, "H": H, "D": C // H, "F": config.d_ff, "V": config.vocab_size, "layers": config.num_layers}
    kind = "gpt" if isinstance(model, GPT) else "transformer"
    return {**sizes, "kind": kind, "norm": config.norm, "positions": str(config.positions)}


def data_text(data: Data) -> str:
    """The script that defines MODEL. Every float64 and float32 number has its exact value in it."""
    text = f"{HEAD}globalThis.MODEL = {_script(data)};\n"
    arrays = [array for weights in data.get("weights", {}).values() for array in weights.values()]
    return text + ROUND if any(array.dtype == np.float32 for array in arrays) else text


def write_data(data: Data, path: str | os.PathLike) -> None:
    """Write the script that defines MODEL to `path`."""
    with atomic_write(path) as partial:
        partial.write_text(data_text(data), encoding="utf8")


def _script(value):
    if isinstance(value, dict) and any(isinstance(each, dict | list | np.ndarray) for each in value.values()):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {_script(each)}" for name, each in value.items()) + "\n}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return f"[{', '.join(map(_script, value))}]"
    if isinstance(value, np.ndarray):
        return "\n".join(LINE.findall(json.dumps(_shortest(value).tolist(), separators=(",", ":"))))
    return json.dumps(value)


def _shortest(array):
    """float32 numbers as the float64 numbers with the fewest digits that are rounded to them, half as many."""
    if array.dtype != np.float32:
        return array
    short = array.astype(str).astype(np.float64)
    # a decimal number very close to the middle of two float32 numbers may be rounded twice, to the wrong one
    return short if np.array_equal(short.astype(np.float32), array) else array.astype(np.float64)
