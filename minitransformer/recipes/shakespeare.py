"""A GPT that learns to write plays, character by character."""

from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.data import TextTask
from minitransformer.decoding import Sampling, generate
from minitransformer.decoding.incremental import SlidingState
from minitransformer.models import GPT, TransformerConfig, gpt_config
from minitransformer.recipes.recipe import Trained
from minitransformer.recipes.text import TextOptions, TextRecipe
from minitransformer.system.files import atomic_write
from minitransformer.system.progress import tqdm

PROMPT = "ROMEO\n"


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


def sample(model: GPT, tokenizer: Any, prompt: str, length: int, seed: int, temperature: float = 0.8) -> str:
    """`prompt`, continued by `length` characters."""
    prompt = "".join(character for character in prompt if character in tokenizer.tokens) or tokenizer.tokens[-1]
    ids = tokenizer.encode(prompt)[None]
    choose = Sampling(np.random.default_rng(seed), temperature)
    return prompt + tokenizer.decode(generate(SlidingState(model, 1), ids, length, choose, eos=None).ids[0])
