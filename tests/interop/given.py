"""Configurations of theirs at small sizes, and random weights for them."""

import json

import numpy as np
from safetensors.numpy import save_file

from minitransformer.interop import config_from_huggingface
from minitransformer.interop.huggingface_tables import bert_table, gpt2_table, t5_table

INDEX = "model.safetensors.index.json"
GPT2_FILE = {"model_type": "gpt2", "vocab_size": 11, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 9}
BERT_FILE = {
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 12,
    "num_attention_heads": 3,
    "intermediate_size": 7,
}
BERT_FILE |= {"num_hidden_layers": 2, "max_position_embeddings": 9, "type_vocab_size": 4}
T5_FILE = {"model_type": "t5", "vocab_size": 11, "d_model": 12, "d_kv": 4, "num_heads": 3, "d_ff": 7, "num_layers": 2}
T5_1_1_FILE = T5_FILE | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
FILES = {"gpt2": GPT2_FILE, "bert": BERT_FILE, "bert classes": BERT_FILE, "t5": T5_FILE, "t5 1.1": T5_1_1_FILE}


def make_state(name, file=None):
    """A random state_dict of theirs, with just the tensors that our tables name."""
    config, rng = config_from_huggingface(file or FILES[name]), np.random.default_rng(5)
    if name.startswith("bert"):
        table = bert_table(config, 4, 5 if "classes" in name else None)
    else:
        table = gpt2_table(config) if name == "gpt2" else t5_table(config)
    shapes = {tensor.name: tensor.shape for source in table.values() for tensor in source.tensors}
    return {theirs: rng.standard_normal(shape).astype(np.float32) for theirs, shape in shapes.items()}


def save(folder, state, config):
    """The two files that a folder of theirs has."""
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), "utf8")


def save_shards(folder, state, config=GPT2_FILE, count=3):
    """Write `state` as their library does for a large model -> {name of a tensor: name of its shard}."""
    shards = [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    shard_of = {name: shards[i % count] for i, name in enumerate(state)}
    for shard in shards:
        save_file({name: state[name] for name in state if shard_of[name] == shard}, folder / shard)
    (folder / "config.json").write_text(json.dumps(config), "utf8")
    write_index(folder, shard_of)
    return shard_of


def write_index(folder, shard_of):
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": shard_of}), "utf8")
