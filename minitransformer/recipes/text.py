"""The base of the recipes on text: a corpus of characters, a cosine schedule, and bits per character."""

import dataclasses
import math
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from minitransformer.config import POSITIONS
from minitransformer.data import MaskedTask, TextBatch, TextTask, load_shakespeare, load_text
from minitransformer.evaluation import mean_loss
from minitransformer.recipes.options import TrainOptions, at_least_1, check_positive, one_of, option
from minitransformer.recipes.recipe import Model, Recipe, Trained
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import History, cosine

NUM_HEADS = 4
EVALUATIONS = 10  # on held-out text during training, unless --eval-interval says otherwise
WINDOWS = 64  # of that text in each evaluation, evenly spread

Windows = TypeVar("Windows", TextTask, MaskedTask)


@dataclasses.dataclass(frozen=True)
class TextOptions(TrainOptions):
    """The options of a task on text."""

    steps: int = option(2400, "number of training steps", at_least_1, resumable=True)
    batch_size: int = option(32, "windows of text in a batch", at_least_1)
    positions: str = option("rope", f"positional encoding: {', '.join(POSITIONS)}", one_of(POSITIONS))
    text: str | None = option(
        None, "UTF-8 text file to train on (default: Shakespeare's plays); with --resume its new place", resumable=True
    )
    length: int = option(128, "characters in a window of text", at_least_1)
    d_model: int = option(128, "features per token", at_least_1)
    num_layers: int = option(4, "number of layers", at_least_1)
    peak: float = option(
        2e-3, "peak learning rate, after the warm-up and before the cosine decay", check_positive, resumable=True
    )
    eval_interval: int | None = option(
        None,
        f"steps between evaluations on held-out text (default: a {EVALUATIONS}th of all steps)",
        at_least_1,
        resumable=True,
        identity=False,
    )

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


class TextRecipe(Recipe[TextOptions, Windows, Model]):
    """A task on text, character by character."""

    defaults = TextOptions()
    rate_option = "peak"
    unit = "character"  # the loss is a mean over these

    def text_task(self, options: TextOptions) -> TextTask:
        """Windows of the text, and its tokenizer."""
        corpus = load_shakespeare() if options.text is None else load_text(options.text)
        tokenizer = CharacterTokenizer.train(corpus.train + corpus.held_out)
        return TextTask(corpus, tokenizer, options.length)

    def source(self, options: TextOptions, data: Windows) -> dict[str, Any]:
        """The path and the SHA-256 of the text."""
        return {"text": options.text and os.path.abspath(options.text), "sha256": data.sha256}

    def smaller_options(self, options: TextOptions) -> tuple[str, ...]:
        """The sizes of the model, and of the windows."""
        return ("--length", "--d-model", "--num-layers")

    def schedule(self, options: TextOptions, config: Any) -> Callable[[int], float]:
        """A cosine with a short warm-up."""
        return partial(cosine, steps=options.steps, peak=options.peak, warmup=options.warmup)

    def largest_batch(self, options: TextOptions, data: Windows) -> tuple[int, list[int]]:
        """The windows of any batch, and their length."""
        return options.batch_size, [options.length]

    def metadata(self, data: Windows) -> dict[str, Any]:
        """The tokenizer."""
        return {"tokenizer": data.tokenizer.to_dict()}

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

        return evaluate, options.eval_interval or max(1, options.steps // EVALUATIONS)

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


def spread_windows(data: TextTask | MaskedTask) -> TextBatch:
    """Windows of the held-out text, evenly spread -> a batch."""
    (batch,) = data.held_out_batches(sys.maxsize)
    rows = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return type(batch)(*(ids[rows] for ids in batch))
