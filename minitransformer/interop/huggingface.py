"""The weights of Hugging Face models in ours: GPT-2, BERT, T5 and today's decoders, without torch or transformers.

    model = load_huggingface("folder/of/gpt2")                                     # config.json and safetensors files
    model = model_from_huggingface(theirs.state_dict(), theirs.config.to_dict())   # a model in memory

huggingface_tables.py and huggingface_decoders.py list their names and ours. Their models need their own tokenizers, and
their special ids, which become `padding`, `start` and `end` of our configuration, differ from ours: T5's target begins
with padding = 0 and ends with 1, GPT-2 has no padding, and its id 0 is a token.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, to_host
from minitransformer.checks import check_dtype, check_names
from minitransformer.interop.huggingface_configs import complete_config, config_from_huggingface, read_config
from minitransformer.interop.huggingface_decoders import FIELDS as DECODERS
from minitransformer.interop.huggingface_decoders import decoder_table, in_our_order
from minitransformer.interop.huggingface_files import StoredTensor, stored_tensors
from minitransformer.interop.huggingface_tables import Source, Tensor, bert_table, gpt2_table, t5_table
from minitransformer.models.since_2017.bert import BERT
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.models.transformer import Transformer

MODELS: dict[str, Any] = {"gpt2": GPT, "bert": BERT, "t5": Transformer, **dict.fromkeys(DECODERS, GPT)}
# their names may begin with it
PREFIX = {"gpt2": "transformer.", "bert": "bert.", "t5": "", **dict.fromkeys(DECODERS, "model.")}
HEADS = ("cls.", "classifier", "lm_head.")  # but those of these parts do not
# {our name: Source}, from our configuration and a model's options
TABLES: dict[str, Any] = {"gpt2": gpt2_table, "bert": bert_table, "t5": t5_table}
TABLES |= {kind: partial(decoder_table, kind=kind) for kind in DECODERS}
# tensors in their states that are not weights, or belong to a head that we do not have
IGNORED = {
    "gpt2": r"h\.\d+\.attn\.(bias|masked_bias)",
    "bert": r"embeddings\.position_ids|embeddings\.token_type_ids|cls\.seq_relationship\.(weight|bias)",
    "t5": r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    **dict.fromkeys(DECODERS, r".*\.rotary_emb\.inv_freq"),
}
# second names of one tensor, which may be present or not
COPIES = {
    "gpt2": {"lm_head.weight": "wte.weight"},
    "bert": {
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    "t5": {f"{name}.weight": "shared.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")},
    **{kind: {"lm_head.weight": "embed_tokens.weight"} for kind in DECODERS},
}

BLOCK = 2**17  # numbers that are read, checked and converted at a time
TILE = 16  # rows of a block that are transposed at a time
ALIGNED = 16  # numbers: where each array begins in the memory of several


def load_huggingface(
    folder: str | os.PathLike[str], *, dtype: DTypeLike = np.float32, **changes: Any
) -> GPT | BERT | Transformer:
    """The model in `folder`, from its config.json and model.safetensors -> GPT, BERT or Transformer.

    Instead of model.safetensors there may be several files and model.safetensors.index.json. Special ids are also read
    from generation_config.json. Weights may be float64, float32, float16 or bfloat16. `changes` replaces fields of our
    TransformerConfig, such as dropout, or max_len of a T5. Raises FileNotFoundError for a missing file, and ValueError
    or TypeError, with the name, for a setting that we cannot represent or a tensor that does not fit.
    """
    theirs = read_config(folder)
    config_from_huggingface(theirs)  # before the weights are looked for
    return model_from_huggingface(stored_tensors(folder), theirs, dtype=dtype, **changes)


def model_from_huggingface(
    state: Mapping[str, Any], theirs: Mapping[str, Any], *, dtype: DTypeLike = np.float32, **changes: Any
) -> GPT | BERT | Transformer:
    """As `load_huggingface`, from their `state_dict` and their configuration as a dictionary."""
    model, given, table = _empty_model(state, theirs, dtype, changes)
    for name, (parameter, array) in _in_one_array(model, dtype).items():
        _fill(array, given, table[name])
        parameter.data = to_device(array)
    return model


def _in_one_array(model, dtype):
    """{name: (a parameter, memory for it on the host)}: parts of one array. The zeros of the model go.

    The system gives memory for large arrays in large pages, and in small ones it takes half of the time of loading.
    """
    parameters, places, end = dict(model.named_parameters()), {}, 0
    for name, parameter in parameters.items():
        places[name] = end, parameter.data.shape
        end += -(-parameter.data.size // ALIGNED) * ALIGNED
        parameter.data = np.empty(0, dtype)
    memory = np.empty(end, dtype)
    return {
        name: (parameters[name], memory[start : start + math.prod(shape)].reshape(shape))
        for name, (start, shape) in places.items()
    }


def outline_huggingface(folder: str | os.PathLike[str]) -> GPT | BERT | Transformer:
    """The model that `load_huggingface` would load, with zeros for weights: they take no memory, and none is read."""
    return _empty_model(stored_tensors(folder), read_config(folder), np.float32, {})[0]


def _empty_model(state, theirs, dtype, changes):
    """The model without its weights, their tensors, and the table that says which belongs where."""
    dtype = check_dtype(dtype)
    config = config_from_huggingface(theirs, **changes)
    if config.share_layers:
        raise ValueError("the layers of a Hugging Face model differ: load it without share_layers")
    given, table, options = _match(state, theirs)
    return MODELS[theirs["model_type"]](config, **options, seed=None, dtype=dtype), given, table


def from_huggingface(state: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights of one of their models under our names -> {our name: array}, as copies on the host.

    `state` {their name: tensor, or anything else that `numpy.asarray` accepts} is from GPT2LMHeadModel, BertForMaskedLM
    (or BertForPreTraining, which has one more head), BertForSequenceClassification, BertModel, which has no head,
    T5ForConditionalGeneration or, by the names in its file, one of the decoders; `theirs` is their configuration as a
    dictionary. `gpt2_table`, `bert_table`, `t5_table` and `decoder_table` list the names.

    Raises ValueError, naming the tensors, if one is missing or unexpected, has a wrong shape or numbers that are not
    finite, or if two names of one tensor have different values.
    """
    given, table, _ = _match(state, theirs)
    return {name: _gather(given, source) for name, source in table.items()}


def _match(state, theirs):
    """Check all names and shapes -> their tensors by plain name, the table of our names, and BERT's options."""
    config, kind = config_from_huggingface(theirs), theirs["model_type"]
    if config.num_layers > len(state):
        raise ValueError(f"the config has {config.num_layers:,} layers, and the state only {len(state)} tensors")
    given, options = _plain_names(state, kind), {}
    if kind == "bert":
        given, options = _bert_options(given, theirs)
    table = TABLES[kind](config, **options)
    shapes = {tensor.name: tensor.shape for source in table.values() for tensor in source.tensors}
    _merge_copies(given, {copy: name for copy, name in COPIES[kind].items() if name in shapes}, shapes, theirs)
    complaint, missing = "the Hugging Face state does not fit its config", shapes.keys() - given.keys()
    if missing and all(name.startswith(("lm_head.", "decoder.")) for name in missing):  # a LlamaModel, T5EncoderModel
        complaint += ", and of models without a head or a decoder, only BertModel can be read"
    check_names(complaint, given, shapes)
    for name, shape in shapes.items():
        if given[name].shape != shape:
            raise ValueError(
                f"the Hugging Face state has {name} of shape {given[name].shape}, its config needs {shape}"
            )
    return given, table, options


def _bert_options(given, theirs):
    """The tensors without a pooler that is for a head that we do not have, and the options of our BERT."""
    classes = given.get("classifier.bias")
    num_classes = 0 if classes is None else math.prod(classes.shape)
    if classes is None:  # the pooler of BertForPreTraining or BertModel
        given = {name: tensor for name, tensor in given.items() if not name.startswith("pooler.dense.")}
    elif not any(name.startswith("pooler.dense.") for name in given):
        raise ValueError(
            "the Hugging Face state has classifier and no pooler, as a BertForTokenClassification: "
            "our classifier is for whole texts, a BertForSequenceClassification"
        )
    segments = complete_config(theirs)[1]["type_vocab_size"]
    masked = any(name.startswith("cls.predictions.") for name in given)
    return given, {"num_segments": segments, "num_classes": None if masked else num_classes}


def _plain_names(state, kind):
    """The weights by their plain names: without the prefix, and current where old files have gamma and beta.

    ValueError if two tensors with one plain name differ.
    """
    given, first = {}, {}  # the tensor, and the first name that it had
    for name, tensor in state.items():
        plain = name.removeprefix(PREFIX[kind])
        plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if re.fullmatch(IGNORED[kind], plain):
            continue
        tensor = tensor if isinstance(tensor, StoredTensor) else _to_numpy(tensor)
        if plain in given and not _are_equal(given[plain], tensor):
            raise ValueError(f"{first[plain]!r} and {name!r} are two names of one tensor, but they differ")
        given[plain] = tensor
        first.setdefault(plain, name)
    return given


def _to_numpy(tensor):
    if not hasattr(tensor, "detach"):
        return to_host(tensor)
    tensor = tensor.detach().cpu()
    if str(getattr(tensor, "dtype", "")) == "torch.bfloat16":  # which NumPy lacks
        tensor = tensor.float()
    return tensor.numpy()


def _are_equal(a, b):
    """Whether two tensors are equal; NaN is equal to itself, so that it is complained about by its own name."""
    return a.shape == b.shape and np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


def _merge_copies(given, copies, wanted, theirs):
    """Keep one name for each tensor: the one that is `wanted`, or both if both are."""
    for copy, name in copies.items():
        if name not in given and copy in given:
            given[name] = given[copy]
        if copy in wanted and theirs.get("tie_word_embeddings") and name in given:
            given.setdefault(copy, given[name])  # newer files of T5 1.1 are called tied, and then may hold it once
        elif copy not in wanted and copy in given and not _are_equal(given.pop(copy), given[name]):
            raise ValueError(
                f"by its config the Hugging Face state has one tensor as {copy} and {name}, but they differ"
            )


def _gather(given, source):
    """One of our arrays, filled from one or more Hugging Face tensors."""
    rows, rest = sum(tensor.shape[0] for tensor in source.tensors), source.tensors[0].shape[1:]
    shape = (*rest, rows) if source.tensors[0].transposed else (rows, *rest)
    array = np.empty(shape, np.result_type(*(next(_blocks(given[name], 1)) for name in source.names)))
    _fill(array, given, source)
    return array


def _fill(array, given, source):
    """Write one or more Hugging Face tensors into one of our arrays.

    Rows are copied in blocks that stay in the processor's cache from the file to our array.
    """
    for tensor, place in stored_as(array, source):
        whole = tensor.head or 1  # a block has whole heads
        rows, start = max(1, BLOCK // math.prod(tensor.shape[1:]) // whole) * whole, 0
        for block in _blocks(given[tensor.name], rows):
            part = checked_numbers(tensor.name, block, array.dtype)
            part = in_our_order(part.T, tensor.head).T if tensor.head else part
            part = part + part.dtype.type(tensor.shift) if tensor.shift else part
            for tile in range(0, len(part), TILE):
                here = part[tile : tile + TILE]
                place[start : start + len(here)] = here
                start += len(here)


def _blocks(tensor, rows):
    """So many rows of a tensor at a time, from a file or from memory."""
    if isinstance(tensor, StoredTensor):
        return tensor.blocks(rows)
    return (tensor[start : start + rows] for start in range(0, len(tensor), rows))


def stored_as(array: np.ndarray, source: Source) -> Iterator[tuple[Tensor, np.ndarray]]:
    """Each of their tensors in a Source, and the part of our `array` that belongs to it, in the shape of theirs."""
    end = 0
    for tensor in source.tensors:
        start, end = end, end + tensor.shape[0]
        yield tensor, (array.T if tensor.transposed else array)[start:end]


def checked_numbers(name: str, tensor: Any, dtype: DTypeLike | None) -> np.ndarray:
    """The numbers of a tensor, in `dtype` unless that is None. ValueError unless all are finite."""
    array = np.asarray(tensor)
    if array.dtype.kind != "f":
        raise ValueError(f"the Hugging Face state has {name} as {array.dtype}, and weights must be real numbers")
    with np.errstate(all="ignore"):
        converted = array if dtype is None else array.astype(dtype, copy=False)
        numbers = converted.ravel()
        squares = numbers.dot(numbers)  # a fast test: only finite numbers have a finite sum of squares
    if not np.isfinite(squares) and not np.isfinite(converted).all():
        if not np.isfinite(array).all():
            raise ValueError(f"the Hugging Face state has NaN or infinity in {name}")
        raise ValueError(f"the Hugging Face state has numbers in {name} that are too large for {dtype}")
    return converted
