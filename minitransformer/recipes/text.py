"""The base of the recipes on text: a corpus of characters, a cosine schedule, and bits per character."""

import dataclasses
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.data import TextTask, load_shakespeare, load_text
from minitransformer.evaluation import mean_loss
from minitransformer.layers.positions import POSITIONS
from minitransformer.progress import tqdm
from minitransformer.recipes.options import TrainOptions, option
from minitransformer.recipes.recipe import Recipe
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import History, cosine

NUM_HEADS = 4
EVALUATIONS = 10  # on held-out text during training
WINDOWS = 64  # of that text in each evaluation, evenly spread


@dataclasses.dataclass(frozen=True)
class TextOptions(TrainOptions):
    """The options of a task on text."""

    steps: int = option(2400, "number of training steps")
    batch_size: int = option(32, "windows of text in a batch")
    positions: str = option("rope", f"positional encoding: {', '.join(POSITIONS)}", choices=tuple(POSITIONS))
    text: str | None = option(None, "UTF-8 text file to train on (default: Shakespeare's plays)")
    length: int = option(128, "characters in a window of text")
    d_model: int = option(128, "features per token")
    num_layers: int = option(4, "number of layers")
    peak: float = option(2e-3, "peak learning rate, after the warm-up and before the cosine decay", resumable=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("length", "d_model", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if not self.peak > 0:
            raise ValueError(f"--peak must be greater than 0, got {self.peak}")

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
        }


class TextRecipe(Recipe):
    """A task on text, character by character."""

    defaults = TextOptions()
    rate_option = "peak"
    unit = "character"  # the loss is a mean over these

    def text_task(self, options: TextOptions) -> TextTask:
        """Windows of the text, and its tokenizer."""
        corpus = load_shakespeare() if options.text is None else load_text(options.text)
        tokenizer = CharacterTokenizer.train(corpus.train + corpus.held_out)
        return TextTask(corpus, tokenizer, options.length)

    def smaller_options(self, options: TextOptions) -> tuple[str, ...]:
        """The sizes of the model, and of the windows."""
        return ("--length", "--d-model", "--num-layers")

    def schedule(self, options: TextOptions, config: Any) -> Callable[[int], float]:
        """A cosine with a short warm-up."""
        return partial(cosine, steps=options.steps, peak=options.peak, warmup=options.warmup)

    def lengths(self, options: TextOptions, data: Any) -> list[int]:
        """The length of every window."""
        return [options.length]

    def metadata(self, data: Any) -> dict[str, Any]:
        """The tokenizer."""
        return {"tokenizer": data.tokenizer.to_dict()}

    def describe(self, options: TextOptions, model: Any, data: Any) -> str:
        """The text, and the model."""
        return (
            f"{self.name}: {data.train_characters:,} characters to learn from, {data.held_out_characters:,} held out, "
            f"{data.tokenizer.vocab_size} tokens; {model.num_parameters():,} parameters, {options.steps:,} steps"
        )

    def evaluation_callback(self, options: TextOptions, model: Any, data: Any, seen: list) -> tuple[Callable, int]:
        """Bits per character of some held-out windows, at regular intervals."""
        windows = spread_windows(data)

        def evaluate(step: int, history: History) -> None:
            bits = mean_loss(model, [windows], options.micro_batch_size) / math.log(2)
            seen.append([step, bits])
            tqdm.write(f"\nstep {step:,}: {bits:.3f} bits per {self.unit}")
            if math.isfinite(bits):
                self.show(options, model, data)

        return evaluate, max(1, options.steps // EVALUATIONS)

    def show(self, options: TextOptions, model: Any, data: Any) -> None:
        """Print a sample of the model's output. The base class prints nothing."""

    def evaluate(self, options: TextOptions, model: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """Bits per character and perplexity on all of the held-out text."""
        nats = mean_loss(model, data.held_out_batches(64), options.micro_batch_size)
        return {"bits_per_character": nats / math.log(2), "perplexity": math.exp(nats)}, None

    def draw(
        self, options: TextOptions, model: Any, data: Any, history: History, evaluated: Any, seen: list, folder: Path
    ) -> list[Path]:
        """The loss, and the bits per character of the held-out text."""
        from minitransformer.plotting import plot_text_training

        path = folder / "loss.png"
        steps, bits = zip(*seen, strict=True) if seen else ((), ())
        plot_text_training(history, steps, bits, path, self.name, self.unit)
        return [path]

    def report(self, result: dict[str, Any], evaluated: Any, data: Any) -> list[str]:
        """Bits per character."""
        return [f"{f'bits per {self.unit}, held out':<34} {result['bits_per_character']:.3f}"]


def spread_windows(data: Any) -> Any:
    """Windows of the held-out text, evenly spread -> a batch."""
    (batch,) = data.held_out_batches(sys.maxsize)
    rows = np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)
    return type(batch)(*(ids[rows] for ids in batch))
