"""The recipes on text, character by character: a GPT that learns to write plays, a BERT that fills in characters."""

import dataclasses
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from minitransformer.data import MaskedTask, TextBatch, TextTask, load_shakespeare, load_text
from minitransformer.decoding import Sampling, generate
from minitransformer.decoding.incremental import SlidingState
from minitransformer.evaluation import mean_loss
from minitransformer.models import BERT, GPT, TransformerConfig, bert_config, gpt_config
from minitransformer.recipes.options import at_least_1, option
from minitransformer.recipes.recipe import CorpusOptions, CorpusRecipe, Trained
from minitransformer.system.files import atomic_write
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import History, cosine

NUM_HEADS = 4
WINDOWS = 64  # of the held-out text in each evaluation, evenly spread
PROMPT = "ROMEO\n"

Windows = TypeVar("Windows", TextTask, MaskedTask)
Model = TypeVar("Model", GPT, BERT)


@dataclasses.dataclass(frozen=True)
class TextOptions(CorpusOptions):
    """The options of a task on text."""

    length: int = option(128, "characters in a window of text", at_least_1)

    def sizes(self) -> dict[str, Any]:
        """The fields of the model's configuration that the options set."""
        return {
            "d_model": self.d_model,
            "num_heads": NUM_HEADS,
            "d_ff": 4 * self.d_model,
            "num_layers": self.num_layers,
            "max_len": self.length,
            "dropout": self.dropout,
            "positions": self.positions,
            **self.attention_fields(),
        }


class TextRecipe(CorpusRecipe[TextOptions, Windows, Model]):
    """A task on text, character by character."""

    defaults = TextOptions(steps=2400, batch_size=32, positions="rope")
    unit = "character"  # the loss is a mean over these

    def text_task(self, options: TextOptions) -> TextTask:
        """Windows of the text, and its tokenizer."""
        corpus = load_shakespeare() if options.text is None else load_text(options.text)
        tokenizer = CharacterTokenizer.train(corpus.train + corpus.held_out)
        return TextTask(corpus, tokenizer, options.length)

    def schedule(self, options: TextOptions, config: Any) -> Callable[[int], float]:
        """A cosine with a short warm-up."""
        return partial(cosine, steps=options.steps, peak=options.peak, warmup=options.warmup)

    def largest_batch(self, options: TextOptions, data: Windows) -> tuple[int, list[int]]:
        """The windows of any batch, and their length."""
        return options.batch_size, [options.length]

    def describe(self, options: TextOptions, model: Model, data: Windows) -> str:
        """The text, and the model."""
        return (
            f"{self.name}: {data.train_characters:,} characters to learn from, {data.held_out_characters:,} held out, "
            f"{data.tokenizer.vocab_size} tokens; {model.num_parameters():,} parameters, {options.steps:,} steps"
        )

    def evaluation_callback(
        self, options: TextOptions, model: Model, data: Windows, evaluations: list[Any]
    ) -> tuple[Callable[[int, History], None], int]:
        """Bits per character of some held-out windows, at regular intervals."""
        windows = spread_windows(data)

        def evaluate(step: int, history: History) -> None:
            bits = mean_loss(model, [windows], options.micro_batch_size) / math.log(2)
            evaluations.append([step, bits])
            tqdm.write(f"\nstep {step:,}: {bits:.3f} bits per {self.unit}")
            if math.isfinite(bits):
                self.show(options, model, data)

        return evaluate, self.eval_interval(options)

    def show(self, options: TextOptions, model: Model, data: Windows) -> None:
        """Print a sample of the model's output. The base class prints nothing."""

    def evaluate(self, options: TextOptions, model: Model, data: Windows) -> tuple[dict[str, Any], Any]:
        """Bits per character and perplexity on all of the held-out text."""
        nats = mean_loss(model, data.held_out_batches(64), options.micro_batch_size)
        return {"bits_per_character": nats / math.log(2), "perplexity": math.exp(nats)}, None

    def draw(self, trained: Trained[TextOptions, Windows, Model], folder: Path) -> list[Path]:
        """The loss, and the bits per character of the held-out text."""
        from minitransformer.plotting import plot_text_training

        path = folder / "loss.png"
        steps, bits = zip(*trained.evaluations, strict=True) if trained.evaluations else ((), ())
        plot_text_training(trained.history, steps, bits, path, self.name, self.unit)
        return [path]

    def report(self, trained: Trained[TextOptions, Windows, Model]) -> list[str]:
        """Bits per character."""
        return [f"{f'bits per {self.unit}, held out':<34} {trained.result['bits_per_character']:.3f}"]


class ShakespeareRecipe(TextRecipe[TextTask, GPT]):
    """A GPT on Shakespeare's plays, or on any text."""

    name = "shakespeare"
    help = "a GPT that learns to write plays like Shakespeare's, or texts like your own"

    def data(self, options: TextOptions) -> TextTask:
        """Windows of the text."""
        return self.text_task(options)

    def model(self, options: TextOptions, data: TextTask) -> tuple[type[GPT], TransformerConfig]:
        """A GPT."""
        return GPT, gpt_config(data.tokenizer.vocab_size, **options.sizes())

    def show(self, options: TextOptions, model: GPT, data: TextTask) -> None:
        """A sample."""
        tqdm.write(sample(model, data.tokenizer, PROMPT, 160, options.seed))

    def draw(self, trained: Trained[TextOptions, TextTask, GPT], folder: Path) -> list[Path]:
        """The loss, and a sample of text."""
        text = sample(trained.model, trained.data.tokenizer, PROMPT, 600, trained.options.seed)
        print(f"\n{text}")
        path = folder / "sample.txt"
        with atomic_write(path) as partial:
            partial.write_text(text.rstrip() + "\n", encoding="utf8")
        return [*super().draw(trained, folder), path]


class MaskedRecipe(TextRecipe[MaskedTask, BERT]):
    """A BERT on Shakespeare's plays, or on any text, that predicts 15 % of the characters."""

    name = "masked"
    help = "a BERT that predicts masked characters of Shakespeare's plays, or of your own text"
    unit = "masked character"

    def data(self, options: TextOptions) -> MaskedTask:
        """Windows of the text, with characters masked."""
        return MaskedTask(self.text_task(options))

    def model(self, options: TextOptions, data: MaskedTask) -> tuple[type[BERT], TransformerConfig]:
        """A BERT."""
        return BERT, bert_config(data.vocab_size, **options.sizes())


def spread_windows(data: TextTask | MaskedTask) -> TextBatch:
    """Windows of the held-out text, evenly spread -> a batch."""
    (batch,) = data.held_out_batches(sys.maxsize)
    rows = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return type(batch)(*(ids[rows] for ids in batch))


def sample(model: GPT, tokenizer: Any, prompt: str, length: int, seed: int, temperature: float = 0.8) -> str:
    """`prompt`, continued by `length` characters."""
    prompt = "".join(character for character in prompt if character in tokenizer.tokens) or tokenizer.tokens[-1]
    ids = tokenizer.encode(prompt)[None]
    choose = Sampling(np.random.default_rng(seed), temperature)
    return prompt + tokenizer.decode(generate(SlidingState(model, 1), ids, length, choose, eos=None).ids[0])
