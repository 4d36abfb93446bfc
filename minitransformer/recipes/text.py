"""The recipes on text: a GPT that learns to write like it, and a BERT that fills in what is hidden."""

import dataclasses
import lzma
import math
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.data import (
    Corpus,
    MaskedTask,
    TextBatch,
    TextTask,
    load_python_topics,
    load_shakespeare,
    load_text,
)
from minitransformer.decoding import generate
from minitransformer.evaluation import mean_loss
from minitransformer.layers.losses import counted_targets
from minitransformer.models import TransformerConfig
from minitransformer.models.since_2017.bert import BERT, bert_config
from minitransformer.models.since_2017.gpt import GPT, gpt_config
from minitransformer.recipes.options import at_least_1, check_rate, option, option_name
from minitransformer.recipes.recipe import CorpusOptions, CorpusRecipe, Trained
from minitransformer.recipes.saved import check_known
from minitransformer.system.files import atomic_write
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import BytePairTokenizer, CharacterTokenizer, Tokenizer
from minitransformer.tokenizers.byte_pair import SMALLEST
from minitransformer.training import History, cosine

MOST, LEAST, READS = 60_800, 9_600, 25  # a text is read so many times, if that takes so many windows
MOST_DROPOUT = 0.2  # 200,000 characters of Python's documentation, read 25 times: 2.10 bits each, and 2.61 with 0
PLAYS = "Shakespeare's plays"
PYTHON = f"the documentation of Python {sys.version_info.major}.{sys.version_info.minor}"  # others have other words
WINDOWS = 64  # of the held-out text in each evaluation, evenly spread
OPENING = 40  # characters of a prompt from the held-out text, at most
READ = 2_000_000  # bytes of the training text that the compressor sees: the last
SHORT, LONG = 160, 800  # characters of a sample, during training and at its end


@dataclasses.dataclass(frozen=True)
class TextOptions(CorpusOptions):
    """The options of a task on text."""

    steps: int = option(7600, "number of training steps (default: fits the text)", at_least_1, resumable=True)
    dropout: float = option(0.0, "dropout rate, P_drop in the paper (default: fits the text)", check_rate)
    length: int = option(128, "tokens in a window of text", at_least_1)
    tokenizer: str = option("bpe", "what a token is", choices=("characters", "bytes", "bpe"))
    vocab_size: int | None = option(
        None, "tokens of --tokenizer bpe (default: fits the text)", partial(check_integer, least=SMALLEST)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocab_size is not None and self.tokenizer != "bpe":
            raise ValueError(f"--vocab-size is for --tokenizer bpe, got {self.tokenizer}")

    def sizes(self) -> dict[str, Any]:
        """And the length of a window."""
        return {**super().sizes(), "max_len": self.length}


class TextRecipe(CorpusRecipe):
    """A task on text."""

    defaults = TextOptions(batch_size=8, positions="rope")
    unit = "character"  # bits are per so many of these
    lines = "training text", "held-out text, a sample of windows"  # in the figure of the loss
    dropout = ((12, 0.0), (20, 0.1))  # the rate for a text that is read less often than this; else MOST_DROPOUT
    load: Callable[[], Corpus] = staticmethod(load_shakespeare)  # the text of those who give none

    def corpus(self, text: str | None) -> Corpus:
        """The file `text`, or the text of those who give none."""
        return self.load() if text is None else load_text(text)

    def fitting(self, given: dict[str, Any]) -> tuple[TextOptions, list[str]]:
        """Defaults that fit the characters of the text: tokens, steps, and dropout by how often it is then read."""
        sizes = {name: given[name] for name in ("tokenizer", "vocab_size", "batch_size", "length") if name in given}
        asked, characters = dataclasses.replace(self.defaults, **sizes), len(self.corpus(given.get("text")).train)
        fits: dict[str, Any] = {}
        a_step: float = asked.batch_size * asked.length  # in characters
        if asked.tokenizer == "bpe":
            size = fitting_vocab_size(characters)
            fits |= {"vocab_size": size} if self.defaults.tokenizer == "bpe" else {}  # else `tokens` takes it
            a_step *= 1.5 + 0.4 * math.log2((asked.vocab_size or size) / SMALLEST)  # as measured
        least, most = LEAST // asked.batch_size, MOST // asked.batch_size
        fits |= {"steps": max(1, least, min(most, round(READS * characters / a_step)))}
        reads = given.get("steps", fits["steps"]) * a_step / max(1, characters)
        fits["dropout"] = next((rate for most, rate in self.dropout if reads < most), MOST_DROPOUT)
        often = f"{characters:,} characters would be read about {reads:.3g} times"
        reasons = {"steps": often, "dropout": often}
        reasons["vocab_size"] = "the bytes, and as many byte pairs as the square root of the characters"
        if "minutes" in given:  # nobody knows yet how many steps, and how many times the text is read in them
            del fits["steps"], fits["dropout"]
        lines = [f"{option_name(name)} {fits[name]}: {reasons[name]}" for name in fits if name not in given]
        return dataclasses.replace(self.defaults, **fits), lines

    def data(self, options: TextOptions, tokenizer: Tokenizer | None = None) -> Any:
        """Windows of the text, of new tokens if there is no `tokenizer`."""
        corpus = self.corpus(options.text)
        return TextTask(corpus, self.tokens(options, corpus, tokenizer), options.length)

    def tokens(self, options: TextOptions, corpus: Corpus, tokenizer: Tokenizer | None) -> Tokenizer:
        """`tokenizer`, or a new one of the `corpus`: all of its characters, bytes, or the commonest byte pairs.

        Raises ValueError if that of an older model lacks characters.
        """
        if tokenizer:
            check_known(tokenizer, "".join(corpus), "the text")
            return tokenizer
        if options.tokenizer == "characters":
            return CharacterTokenizer.train(corpus.train + corpus.held_out)
        if options.tokenizer == "bytes":
            return BytePairTokenizer()
        return BytePairTokenizer.train(corpus.train, options.vocab_size or fitting_vocab_size(len(corpus.train)))

    def schedule(self, options: TextOptions, config: Any) -> Callable[[int], float]:
        """A cosine with a short warm-up."""
        return partial(cosine, steps=options.steps, peak=options.peak, warmup=options.warmup)

    def largest_batch(self, options: TextOptions, data: Any) -> tuple[int, list[int]]:
        """The windows of any batch, and their length."""
        return options.batch_size, [options.length]

    def describe(self, options: TextOptions, model: Any, data: Any) -> str:
        """The text, and the model."""
        fewer = " (no more byte pairs occur twice)" if data.tokenizer.vocab_size < (options.vocab_size or 0) else ""
        return (
            f"{self.name}: {options.text or self.own_text}; {data.train_characters:,} characters to learn from, "
            f"{data.held_out_characters:,} held out, {data.tokenizer.vocab_size:,} tokens{fewer}; "
            f"{model.num_parameters():,} parameters, {options.steps:,} steps"
        )

    def evaluation_callback(
        self, options: TextOptions, model: Any, data: Any, evaluations: list[Any]
    ) -> tuple[Callable[[int, History], None], int]:
        """Bits per character of some held-out windows, at regular intervals."""
        windows = [spread_windows(data)]

        def evaluate(step: int, history: History) -> None:
            bits = mean_loss(model, windows, options.micro_batch_size) / math.log(2)
            bits *= self.per_unit(data, windows)
            evaluations.append([step, bits])
            tqdm.write(f"\nstep {step:,}: {bits:.3f} bits per {self.unit}")
            if math.isfinite(bits):
                self.show(options, model, data)

        return evaluate, self.eval_interval(options)

    def per_unit(self, data: Any, batches: Iterable[TextBatch]) -> float:
        """The targets of `batches` in a unit."""
        return tokens_per_character(data, batches)

    def show(self, options: TextOptions, model: Any, data: Any) -> None:
        """Print a sample of the model's output. The base class prints nothing."""

    def evaluate(self, options: TextOptions, model: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """Bits per character, and the perplexity of a token, on all of the held-out text."""
        batches = list(data.held_out_batches(64))
        nats = mean_loss(model, batches, options.micro_batch_size)
        bits = nats / math.log(2) * tokens_per_character(data, batches)
        return {"bits_per_character": bits, "perplexity": math.exp(nats)}, None

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """The loss, and the bits per character of the held-out text."""
        from minitransformer.plotting import plot_text_training

        path = folder / "loss.png"
        steps, bits = zip(*trained.evaluations, strict=True) if trained.evaluations else ((), ())
        windows = trained.data.batch(np.random.default_rng(0), WINDOWS)
        per_unit = self.per_unit(trained.data, [windows])
        plot_text_training(trained.history, steps, bits, path, self.name, self.unit, self.lines, per_unit)
        return [path]

    def report(self, trained: Trained) -> list[str]:
        """Bits per character."""
        return [f"{f'bits per {self.unit}, held out':<34} {trained.result['bits_per_character']:.3f}"]


class WritingRecipe(TextRecipe):
    """A GPT on Shakespeare's plays, or on any text."""

    def __init__(self, name: str, help: str, own_text: str, load: Callable[[], Corpus]) -> None:
        self.name, self.help, self.own_text, self.load = name, help, own_text, load

    def model(self, options: TextOptions, data: TextTask) -> tuple[type[GPT], TransformerConfig]:
        """A GPT."""
        return GPT, gpt_config(data.tokenizer.vocab_size, **options.sizes())

    def evaluate(self, options: TextOptions, model: GPT, data: TextTask) -> tuple[dict[str, Any], Any]:
        """What a file compressor needs for the held-out text besides."""
        train, held_out = (data.tokenizer.decode(ids).encode("utf8", "replace") for ids in (data.train, data.held_out))
        size = len(lzma.compress(train[-READ:] + held_out)) - len(lzma.compress(train[-READ:]))
        numbers, evaluated = super().evaluate(options, model, data)
        return {**numbers, "xz_bits_per_character": 8 * size / data.held_out_characters}, evaluated

    def report(self, trained: Trained) -> list[str]:
        """A yardstick besides."""
        bits = trained.result["xz_bits_per_character"]
        return [*super().report(trained), f"{'the same of xz, for comparison':<34} {bits:.3f}, after the training text"]

    def show(self, options: TextOptions, model: GPT, data: TextTask) -> None:
        """A sample."""
        tqdm.write(sample(model, data, SHORT))

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """The loss, and a sample of text."""
        text = sample(trained.model, trained.data, LONG)
        print(f"\n{text}")
        path = folder / "sample.txt"
        with atomic_write(path) as partial:
            partial.write_text(text.rstrip() + "\n", encoding="utf8")
        return [*super().draw(trained, folder), path]


class MaskedRecipe(TextRecipe):
    """A BERT on Shakespeare's plays, or on any text, that predicts 15 % of the tokens."""

    name, own_text = "masked", PLAYS
    help = "a BERT that predicts masked characters of Shakespeare's plays, or of your own text"
    unit = "masked character"
    defaults = dataclasses.replace(TextRecipe.defaults, batch_size=32, tokenizer="characters")
    dropout = ((30, 0.0), (80, 0.1))  # other tokens are hidden each time

    def data(self, options: TextOptions, tokenizer: Tokenizer | None = None) -> MaskedTask:
        """Windows of the text, with tokens masked."""
        data = super().data(options, tokenizer)
        return MaskedTask(data, data.tokenizer.padding)

    def model(self, options: TextOptions, data: MaskedTask) -> tuple[type[BERT], TransformerConfig]:
        """A BERT."""
        return BERT, bert_config(data.vocab_size, **options.sizes())


def spread_windows(data: TextTask | MaskedTask) -> TextBatch:
    """Windows of the held-out text, evenly spread -> a batch."""
    (batch,) = data.held_out_batches(sys.maxsize)
    rows = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return type(batch)(*(ids[rows] for ids in batch))


def tokens_per_character(data: TextTask | MaskedTask, batches: Iterable[TextBatch]) -> float:
    """The tokens that are predicted in `batches` of `data`, per character that they stand for."""
    targets = np.concatenate([batch.targets.ravel() for batch in batches])
    targets = targets[counted_targets(targets, data.padding)]
    return len(targets) / max(1, data.tokenizer.count_characters(targets))


def fitting_vocab_size(characters: int) -> int:
    """The bytes, and as many byte pairs as the square root of the characters: each is still seen often."""
    return SMALLEST + math.isqrt(characters)


def opening(data: TextTask) -> str:
    """The first words of an ordinary sentence in the middle of the held-out text, or else of a line, or of any word."""
    text = data.tokenizer.decode(data.held_out[len(data.held_out) // 2 :][:1000])
    ends = (r"[.!?:]\s+|\n\n\s*", r"\n\s*", " ")  # of what comes before
    starts = [end.end() for kind in ends for end in re.finditer(kind, text[:-OPENING])]
    first = next((start for start in starts if is_ordinary(text[start:])), (starts or [0])[0])
    return text[first:][:OPENING].rpartition(" ")[0] or text[first:][:OPENING]


def is_ordinary(sentence: str) -> bool:
    """Whether a sentence begins as most do, with a capital letter and then in lower case: no heading, no list."""
    first, *others = sentence.split(maxsplit=4)[:4] or [""]
    return first[:1].isupper() and all(word.islower() for word in (first[1:] or "a", *others))


def sample(model: GPT, data: TextTask, length: int) -> str:
    """The opening of a held-out paragraph, continued by about `length` characters."""
    prompt, tokens = opening(data), round(length * len(data.held_out) / data.held_out_characters)
    return prompt + data.tokenizer.decode(generate(model, data.tokenizer.encode(prompt), max(1, tokens)))


WRITING_RECIPES = (
    WritingRecipe("text", "a GPT that learns to write like a text of yours", PYTHON, load_python_topics),
    WritingRecipe("shakespeare", "the same, on Shakespeare's plays", PLAYS, load_shakespeare),
)
