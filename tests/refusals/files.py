"""Bad texts, checkpoints and tokenizers, from the command line and from the library."""

from minitransformer.data import load_text
from minitransformer.interop.huggingface import load_huggingface
from minitransformer.tokenizers import load_tokenizer, tokenizer_from_dict
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.refusals.cases import Case, command, library
from tests.refusals.command_line import LONG, disk_full, may_not_read
from tests.refusals.given import TOKENIZER, gpt

SHORT = ("--length", 16, "--d-model", 8, "--num-layers", 1, "--steps", 2)


def text(wrong, path, **more):
    """A case of --text."""
    return command("--text", wrong, "train", "shakespeare", "--text", path, *SHORT, **more)


def model(wrong, path, *options):
    """A case of a model's file."""
    return command("model file", wrong, "generate", path, *options)


TEXTS = [
    text("is not there", "missing.txt"),
    text("no name", ""),
    text("is a folder", "empty_folder"),
    text("is a device", "/dev/zero"),
    text("may not be read", "my.txt", patch=may_not_read),
    text("a name too long", LONG),
    text("a name with a zero byte", "a\0b"),
    text("is empty", "empty.txt"),
    text("holds a byte order mark alone", "mark.txt"),
    text("is shorter than a window", "short.txt"),
    text("is in Latin-1", "latin1.txt"),
    text("is in UTF-16", "utf16.txt"),
    text("is binary", "binary.txt"),
    text("is a model", "gpt.safetensors"),
]

MODELS = [
    model("is not there", "missing.safetensors"),
    model("is a folder", "empty_folder"),
    model("is a device", "/dev/zero"),
    model("is a text", "my.txt"),
    model("is empty", "empty.txt"),
    model("is cut in the middle", "half.safetensors"),
    model("is cut behind its header", "no_data.safetensors"),
    model("has bytes behind its end", "longer.safetensors"),
    model("has a bit flipped in a weight", "bit_of_weight.safetensors"),
    model("has another number in its configuration", "bit_of_config.safetensors"),
    model("says its header has 2^64 - 1 bytes", "long_header.safetensors"),
    model("has a header 100,000 levels deep", "deep.safetensors"),
    model("has a tensor that ends behind the file", "past_the_end.safetensors"),
    model("has bfloat16 weights", "bfloat16.safetensors"),
    model("is of another library", "not_ours.safetensors"),
    model("is of a newer version", "newer.safetensors"),
    model("is of a version that never was", "older.safetensors"),
    model("is of an unknown model", "other_model.safetensors"),
    model("has one layer, and two in its configuration", "other_layers.safetensors"),
    model("has an unknown field in its configuration", "other_field.safetensors"),
    model("has a word for a number in its configuration", "text_field.safetensors"),
    model("has a word for a switch in its configuration", "switch.safetensors"),
    model("has 10^12 layers in its configuration", "huge.safetensors"),
    model("has 10^12 positions in its configuration", "huge_table.safetensors"),
    model("has a list for its metadata", "list.safetensors"),
    model("has metadata 100,000 levels deep", "deep_metadata.safetensors"),
    model("has integer weights", "integers.safetensors"),
    model("has float16 weights", "half_floats.safetensors"),
    model("has no weights", "weightless.safetensors"),
    model("has no tokenizer", "mute.safetensors"),
    model("guesses hidden characters", "bert.safetensors"),
    command("--resume", "is not there", "train", "--resume", "missing"),
    command("--resume", "is a folder without checkpoints", "train", "--resume", "empty_folder"),
    command("--resume", "is a model that was trained to its end", "train", "--resume", "gpt.safetensors"),
    command("--resume", "does not say how it was begun", "train", "--resume", "not_taken_up.safetensors"),
    command("--resume", "is damaged", "train", "--resume", "bit_of_weight.safetensors"),
]

PROMPTS = [
    model("its tokenizer does not know a character", "gpt.safetensors", "--prompt", "Ä"),
    model("an empty prompt", "gpt.safetensors", "--prompt", ""),
    model("a temperature of 0", "gpt.safetensors", "--temperature", 0),
    model("a temperature that is no number", "gpt.safetensors", "--temperature", "nan"),
    model("draw from 0 tokens", "gpt.safetensors", "--top-k", 0),
    model("draw from a share above 1", "gpt.safetensors", "--top-p", 1.5),
    model("no token to say", "gpt.safetensors", "--length", 0),
    model("runs of -1 tokens", "gpt.safetensors", "--no-repeat", -1),
]

FROM_THE_LIBRARY = [
    library("load_text", "is not there", FileNotFoundError, lambda: load_text("missing.txt")),
    library("load_text", "is binary", ValueError, lambda: load_text("binary.txt")),
    library("load_checkpoint", "is not there", FileNotFoundError, lambda: load_checkpoint("missing.safetensors")),
    library("load_checkpoint", "is a folder", IsADirectoryError, lambda: load_checkpoint("empty_folder")),
    library("load_checkpoint", "has a bit flipped", ValueError, lambda: load_checkpoint("bit_of_weight.safetensors")),
    library("save_checkpoint", "into a device", OSError, lambda: save_checkpoint("/dev/full/model", gpt())),
    library("save_checkpoint", "below a file", OSError, lambda: save_checkpoint("file/model", gpt())),
    library("save_checkpoint", "a set, which JSON has not", TypeError, lambda: save_checkpoint("m", gpt(), a={1})),
    library("load_tokenizer", "is not there", FileNotFoundError, lambda: load_tokenizer("missing.json")),
    library("load_tokenizer", "is a model", ValueError, lambda: load_tokenizer("gpt.safetensors")),
    library("load_tokenizer", "is a list", ValueError, lambda: load_tokenizer("list.json")),
    library("load_tokenizer", "has another character", ValueError, lambda: load_tokenizer("bit.json")),
    library("load_tokenizer", "is of a newer version", ValueError, lambda: load_tokenizer("newer.json")),
    library("tokenizer_from_dict", "has no kind", ValueError, lambda: tokenizer_from_dict({})),
    library("load_huggingface", "has half a config.json", ValueError, lambda: load_huggingface(".")),
    library("Tokenizer.decode", "an id that there is not", IndexError, lambda: TOKENIZER.decode([999])),
    library("Tokenizer.encode", "bytes", TypeError, lambda: TOKENIZER.encode(b"1")),
    Case("save_checkpoint", "a full disk", call=lambda: save_checkpoint("m", gpt()), raises=OSError, patch=disk_full),
]

CASES = [*TEXTS, *MODELS, *PROMPTS, *FROM_THE_LIBRARY]
