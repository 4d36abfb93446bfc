"""The files that the cases use: good ones, and copies that are each damaged in one way."""

import functools
import json
import struct

import numpy as np
from safetensors.numpy import save

from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config
from minitransformer.system.files import checksum
from minitransformer.tokenizers import CharacterTokenizer, save_tokenizer
from minitransformer.training import save_checkpoint
from minitransformer.training.saving.checkpoint import FORMAT
from tests.interop.given import BERT_FILE, GPT2_FILE, make_state

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 9}
TEXT = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
TOKENIZER = CharacterTokenizer.train(TEXT)
LAYERS = """\
from minitransformer.core import Layer


class Empty:
    pass


number = 1


class Fails(Layer):
    def forward(self, x, rng=None):
        return x, None

    def backward(self, dy, cache):
        return dy + self.missing


class NoCache(Fails):
    def forward(self, x, rng=None):
        return 2 * x


class NoTuple(Fails):
    @staticmethod
    def example():
        return NoTuple()
"""


def gpt():
    """A very small language model of TEXT."""
    return GPT(gpt_config(TOKENIZER.vocab_size, **SIZES))


def own_transformers():
    """(name, model, metadata) of Transformers that the explorer cannot show, or only some words of."""
    small, reverse = TransformerConfig(11, **SIZES), {"task": "reverse"}
    nan = Transformer(small)
    nan.output.E.data[3, 1] = np.nan
    yield "nan", nan, {}
    yield "ids", Transformer(small), {}
    yield "other_task", Transformer(small), reverse
    yield "other_size", Transformer(TransformerConfig(29, **{**SIZES, "d_ff": 5})), reverse
    yield "wide", Transformer(TransformerConfig(29, **{**SIZES, "d_ff": 8000})), reverse


def sealed(arrays=None, **changes):
    """The bytes of a checkpoint with a valid checksum and a changed header, as in `config={...}`."""
    model = Transformer(TransformerConfig(11, **SIZES))
    config = {"vocab_size": 11, **SIZES, **changes.pop("config", {})}
    header = {
        "format": changes.pop("version", FORMAT),
        "model": "Transformer",
        "config": json.dumps(config),
        "options": "{}",
        "metadata": "{}",
        **changes,
    }
    arrays = model.state_dict() if arrays is None else arrays
    return save(arrays, {**header, "checksum": checksum(header, arrays)})


def with_header(header, data=b""):
    """The bytes of a file with any header: the length of the header, the header, the data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def flipped(data, place):
    """`data` with one bit changed."""
    place %= len(data)
    return data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :]


def checkpoints(good):
    """{name: bytes} of damaged and hostile checkpoints; `good` is a valid one."""
    state = Transformer(TransformerConfig(11, **SIZES)).state_dict()
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    training = {"training": {"step": 1}, "about": {}}
    measured = {f"training/{name}": np.ones(1) for name in ("losses", "norms", "learning_rates")}
    return {
        "half": good[: len(good) // 2],
        "no_data": good[: 8 + struct.unpack("<Q", good[:8])[0]],
        "longer": good + b"more",
        "bit_of_weight": flipped(good, -5),
        "bit_of_config": good.replace(b'dropout\\": 0.1', b'dropout\\": 0.3'),
        "long_header": b"\xff" * 8 + good[8:],
        "deep": with_header(b'{"a":' * 100_000),
        "past_the_end": with_header({"x": {**tensor, "data_offsets": [0, 2**40]}}, bytes(8)),
        "bfloat16": with_header({"x": {**tensor, "dtype": "BF16", "data_offsets": [0, 4]}}, bytes(4)),
        "not_ours": save({"x": np.zeros(2)}),
        "newer": sealed(version="minitransformer-3"),
        "older": sealed(version="minitransformer-0"),
        "other_model": sealed(model="RNN"),
        "other_layers": sealed(config={"num_layers": 2}),
        "other_field": sealed(config={"sparsity": 4}),
        "text_field": sealed(config={"dropout": "much"}),
        "switch": sealed(config={"bias": "no"}),
        "huge": sealed(config={"num_layers": 10**12}),
        "huge_table": sealed(config={"max_len": 10**12}),
        "list": sealed(metadata="[]"),
        "deep_metadata": sealed(metadata="[" * 100_000),
        "integers": sealed(arrays={name: array.astype(np.int32) for name, array in state.items()}),
        "half_floats": sealed(arrays={name: array.astype(np.float16) for name, array in state.items()}),
        "weightless": sealed(arrays={}),
        "no_options": sealed(arrays={**state, **measured}, metadata=json.dumps(training)),
    }


def huggingface():
    """{name: bytes} of folders with a Hugging Face model, each with one thing that is wrong."""
    state = make_state("gpt2")
    nan, large = ({**state, "ln_f.bias": np.full(12, value)} for value in (np.nan, 1e39))
    index = {"weight_map": dict.fromkeys(state, "model-1.safetensors")}
    outside = {"weight_map": {**index["weight_map"], "wte.weight": "../gpt.safetensors"}}
    configs = dict.fromkeys(("plain", "nan", "large", "twice", "shard", "outside"), GPT2_FILE)
    configs |= {"null": GPT2_FILE | {"n_embd": None}, "bert": BERT_FILE}
    return {
        **{f"{name}/config.json": json.dumps(config).encode() for name, config in configs.items()},
        "plain/model.safetensors": save(state),
        "nan/model.safetensors": save(nan),
        "large/model.safetensors": save(large),
        "twice/model.safetensors": save({**state, "transformer.wte.weight": 2 * state["wte.weight"]}),
        "shard/model.safetensors.index.json": json.dumps(index).encode(),
        "outside/model.safetensors.index.json": json.dumps(outside).encode(),
    }


@functools.cache
def files():
    """{name: bytes} of all files that the cases need, created once."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_checkpoint(folder / "gpt.safetensors", gpt(), tokenizer=TOKENIZER.to_dict())
        save_checkpoint(folder / "mute.safetensors", gpt())
        save_checkpoint(folder / "bert.safetensors", BERT(bert_config(TOKENIZER.vocab_size, **SIZES)))
        reader = BERT(bert_config(TOKENIZER.vocab_size, **SIZES))
        save_checkpoint(folder / "reader.safetensors", reader, tokenizer=TOKENIZER.to_dict())
        save_checkpoint(folder / "toy.safetensors", Transformer(TransformerConfig(29, **SIZES)), task="reverse")
        translator = Transformer(TransformerConfig(TOKENIZER.vocab_size, **SIZES))
        save_checkpoint(
            folder / "translator.safetensors", translator, task="translation", tokenizer=TOKENIZER.to_dict()
        )
        for name, model, task in own_transformers():
            save_checkpoint(folder / f"{name}.safetensors", model, **task)
        masked = BERT(bert_config(TOKENIZER.vocab_size + 1, **SIZES))
        save_checkpoint(folder / "masked.safetensors", masked, tokenizer=TOKENIZER.to_dict())
        save_tokenizer(folder / "tokenizer.json", TOKENIZER)
        made = {path.name: path.read_bytes() for path in folder.iterdir()}
    texts = {
        "my.txt": TEXT.encode(),
        "empty.txt": b"",
        "mark.txt": b"\xef\xbb\xbf",
        "short.txt": b"too short\r\n",
        "latin1.txt": "caf\xe9 ".encode("latin1") * 200,
        "utf16.txt": TEXT.encode("utf-16"),
        "binary.txt": b"abc\0def" * 200,
        "pairs.tsv": "".join(f"Satz {i}\tsentence {i}\n" for i in range(90)).encode(),
        "latin1.tsv": "Hallo!\tHello!\nGröße\tsize\n".encode("latin1"),
        "no_tab.tsv": b"Hallo!\tHello!\n\nNoch ein Satz\n",
        "no_translation.tsv": b"Hallo!\t \n",
        "file": b"a file",
        "own.py": LAYERS.encode(),
        "broken.py": b"def (:\n",
        "leaves.py": b"raise SystemExit(0)\n",
        "notes_list/progress.json": b"[]",
        "notes_text/progress.json": b'{"06_attention_backward": {"hints": "x"}}',
        "notes_half/progress.json": b'{"06_att',
        "empty_folder/.keep": b"",
        "bit.json": made["tokenizer.json"].replace(b'"t"', b'"\xc3\xa4"'),
        "list.json": b"[1]",
        "newer.json": made["tokenizer.json"].replace(b"tokenizer-1", b"tokenizer-9"),
        "config.json": b'{"model_type": ',
    }
    unfinished, step = (
        checkpoints(made["gpt.safetensors"])["no_options"],
        "checkpoints/step-0000000{}.safetensors".format,
    )
    runs = {
        "finished/model.safetensors": made["gpt.safetensors"],
        "unfinished/checkpoints/step-00000003.safetensors": unfinished,
        f"damaged/{step(2)}": unfinished,
        f"damaged/{step(3)}": unfinished[:-1] + bytes([unfinished[-1] ^ 1]),
        f"mixed/{step(3)}": unfinished,
        "mixed/config.json": b'{"run": "1f0c2e7d35a94b68"}',
        "locked/lock": b'{"pid": 7, "host": "another-computer", "started": "2026-11-22 09:30:00"}',
    }
    damaged = {f"{name}.safetensors": data for name, data in checkpoints(made["gpt.safetensors"]).items()}
    return {**made, **texts, **runs, **damaged, **huggingface()}


def give(folder):
    """Write all of them into `folder`."""
    for name, data in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
