"""Damaged and forged files: each is refused, or read as what it was before."""

import contextlib
import json
import unicodedata

import numpy as np
from safetensors.numpy import save

from minitransformer.config import flat_fields
from minitransformer.data import load_text
from minitransformer.data.pairs import read_pairs
from minitransformer.interop import load_huggingface, load_huggingface_tokenizer
from minitransformer.system.files import checksum
from minitransformer.tokenizers import BytePairTokenizer, load_tokenizer, save_tokenizer, tokenizer_from_dict
from minitransformer.training import load_checkpoint, save_checkpoint
from minitransformer.training.saving.checkpoint import FORMAT
from tests.interop.given import GPT2_FILE, make_state, save_shards
from tests.interop.tokenizer_files import tokenizer_json, write_json, write_two_files
from tests.refusals.damage import damage, edited
from tests.refusals.ending import demand
from tests.refusals.given import TEXT, TOKENIZER, gpt

PAIRS = "\n".join(
    f'Das schöne Haus {i} – »alt« \u2028 u\u0308ber\tthe "nice" house {i} 🙂\t{i}' for i in range(30)
).encode()
FOREIGN = "äöü 漢字 🙂\r\nline\rline\n".encode() * 30


class Good:
    """Sound files, made once for all cases, and the path `bad` of the damaged ones."""

    def __init__(self, folder):
        self.folder, self.bad = folder, folder / "bad"
        self.model = gpt()
        self.state = self.model.state_dict()
        save_checkpoint(folder / "model", self.model, tokenizer=TOKENIZER.to_dict(), step=7)
        self.checkpoint = (folder / "model").read_bytes()
        (folder / "text").write_text(TEXT, "utf-8")
        self.tokenizers = []
        for tokenizer in (TOKENIZER, BytePairTokenizer.train(TEXT, 280)):
            save_tokenizer(folder / "tokenizer", tokenizer)
            self.tokenizers.append((tokenizer, (folder / "tokenizer").read_bytes()))
        self.gpt2 = folder / "gpt2"
        self.gpt2.mkdir()
        save_shards(self.gpt2, make_state("gpt2"), GPT2_FILE, count=2)
        write_two_files(self.gpt2)
        write_json(self.gpt2 / "tokenizer.json", tokenizer_json())


def checkpoints(rng, good):
    """A damaged checkpoint is refused, or gives the very model that was saved."""
    good.bad.write_bytes(damage(rng, good.checkpoint))
    model, metadata = load_checkpoint(good.bad)
    demand(model.config == good.model.config, "another configuration")
    demand(metadata == {"tokenizer": TOKENIZER.to_dict(), "step": 7}, "other metadata")
    _demand_weights(model, good.state)


def forged_checkpoints(rng, good):
    """A checkpoint by somebody who means harm, with a right checksum, is refused or gives a model that runs."""
    header = {"format": FORMAT, "model": "GPT", "options": {}, "metadata": {"step": 7}}
    config, fate = flat_fields(good.model.config), rng.random()
    if fate < 0.5:
        header["config"] = edited(rng, config)
    elif fate < 0.6:
        header |= {"config": config, "model": "BERT", "options": {"num_segments": 2, "num_classes": edited(rng, 3)}}
    else:
        header = edited(rng, {**header, "config": config})
    header = header if isinstance(header, dict) else {"format": header}
    state = forged_state(rng, good.state)
    texts = {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in header.items()}
    texts = {key: value.encode(errors="replace").decode() for key, value in texts.items()}  # a file has no half letters
    good.bad.write_bytes(save(state, {**texts, "checksum": checksum(texts, state)}))
    model, _ = load_checkpoint(good.bad)
    _demand_weights(model, state)
    demand(np.isfinite(model(np.array([[3, 4, 5]]))).all(), "logits that are not finite")


def forged_state(rng, state):
    """The weights, or in one case of three with one of them gone, renamed, of another shape or of another dtype."""
    names = list(state)
    name, fate = names[rng.integers(len(names))], rng.integers(12)
    changed = dict(state)
    array = changed.pop(name)
    if fate == 0:
        return changed
    fates = {1: (f"{name}x", array), 2: (name, array[:1]), 3: (name, array.astype(np.float64))}
    name, array = fates.get(int(fate), (name, array))
    return {**changed, name: array}


def _demand_weights(model, state):
    for name, weights in model.state_dict().items():
        demand(np.array_equal(weights, state[name]), f"another {name}")


def texts(rng, good):
    """A damaged text is refused, or gives what its bytes say, without a mark and with newlines at the ends of lines."""
    data = damage(rng, (TEXT.encode(), FOREIGN)[rng.integers(2)])
    good.bad.write_bytes(data)
    corpus = load_text(good.bad)
    expected = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    demand(b"\0" not in expected, "a zero byte")
    demand((corpus.train + corpus.held_out).encode() == expected, "another text")


def pairs(rng, good):
    """A damaged file of pairs is refused, or gives the first two columns of its lines, whatever else its bytes say."""
    data = damage(rng, PAIRS)
    good.bad.write_bytes(data)
    found = read_pairs(good.bad)
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.split("\t") for line in text.split("\n") if line.strip()]
    numbered = [len(line) == 4 and line[0].isdecimal() and line[2].isdecimal() for line in lines]
    lines = [line[1::2] if has_numbers else line[:2] for line, has_numbers in zip(lines, numbered, strict=True)]
    words = [tuple(unicodedata.normalize("NFC", column).split() for column in line) for line in lines]
    demand([tuple(map(str.split, pair)) for pair in found] == without_repetitions(words), "other pairs")
    demand(all("  " not in text and text == text.strip() != "" for pair in found for text in pair), "untidy text")


def without_repetitions(values):
    """Each of the values once, where it comes first."""
    return [value for place, value in enumerate(values) if value not in values[:place]]


def tokenizers(rng, good):
    """A damaged tokenizer is refused, or is the very one that was saved; without its checksum, what the file says."""
    tokenizer, data = good.tokenizers[rng.integers(len(good.tokenizers))]
    data = damage(rng, data)
    good.bad.write_bytes(data)
    loaded = load_tokenizer(good.bad)
    content = json.loads(data)
    if "checksum" in content:
        demand(loaded.to_dict() == tokenizer.to_dict(), "another tokenizer")
    else:
        demand(content == {"format": content["format"], **loaded.to_dict()}, "not what the file says")
    demand(tokenizer_from_dict(loaded.to_dict()).tokens == loaded.tokens, "a tokenizer that cannot be saved")


def huggingface_models(rng, good):
    """A Hugging Face model with a damaged file is refused, or can be computed with."""
    names = ("config.json", "config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors")
    with _damaged(rng, good.gpt2 / names[rng.integers(len(names))]):
        model = load_huggingface(good.gpt2)
    demand(all(np.isfinite(weights).all() for weights in model.state_dict().values()), "weights that are not finite")
    with np.errstate(all="ignore"):  # finite weights may be too large to compute with
        logits = model(np.array([[1, 2, 3]]))
    demand(logits.shape == (1, 3, model.config.vocab_size), "other logits")


def huggingface_tokenizers(rng, good):
    """A Hugging Face tokenizer with a damaged file is refused, or gives each text back."""
    names = ("tokenizer.json", "vocab.json", "merges.txt")
    name = names[rng.integers(len(names))]
    whole = good.gpt2 / "tokenizer.json"
    content = whole.read_bytes()
    if name != whole.name:
        whole.unlink()
    try:
        with _damaged(rng, good.gpt2 / name):
            tokenizer = load_huggingface_tokenizer(good.gpt2)
    finally:
        whole.write_bytes(content)
    ids = tokenizer.encode(TEXT[:200])
    is_special = any(token.content in TEXT[:200] for token in tokenizer.added)
    demand(is_special or tokenizer.decode(ids) == TEXT[:200], "another text")
    demand(tokenizer_from_dict(tokenizer.to_dict()).encode(TEXT[:200]).tolist() == ids.tolist(), "other ids when saved")


@contextlib.contextmanager
def _damaged(rng, path):
    """Inside a `with` block, the file is damaged."""
    content = path.read_bytes()
    path.write_bytes(damage(rng, content))
    try:
        yield
    finally:
        path.write_bytes(content)
