"""What a run starts from with --from: the weights and the tokenizer of another run, or of a Hugging Face folder."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from minitransformer.config import TransformerConfig, flat_fields
from minitransformer.recipes.options import LAYER_OPTIONS, option_name
from minitransformer.recipes.recipe import Recipe
from minitransformer.recipes.saved import open_model
from minitransformer.tokenizers import CharacterTokenizer, Tokenizer
from minitransformer.tokenizers.byte_pair import SMALLEST

# of the learning rate, and the widest d_model that gets it. After 150 steps on Python's code, GPTs of
# its documentation had so many bits per character of code (and of documentation) with 2e-3, 1e-3 and 3.3e-4:
# d_model 128    2.05 (2.02)    2.07 (1.90)    2.18 (1.75)
# d_model 384    2.08 (2.24)    2.02 (2.03)    2.04 (1.84)
PEAK, WIDTH = 1e-3, 128
# options that a model has settled, and its configuration has as flat fields under the same names
SETTLED = ("d_model", "num_layers", "num_heads", "positions", "norm", *LAYER_OPTIONS)


class Start(NamedTuple):
    """A model to start from, and what `path` says where it is."""

    path: str
    model: Any
    tokenizer: Tokenizer

    @classmethod
    def load(cls, path: str, recipe: Recipe) -> "Start":
        """The start of a run of `recipe`. Raises ValueError for a model that cannot be one."""
        model, tokenizer = open_model(path, recipe.name)
        if tokenizer is None or not isinstance(model.config, TransformerConfig):
            kind = type(model).__name__ + ("" if tokenizer else " without a tokenizer")
            raise ValueError(f"{path} is a {kind}: --from takes Transformers, GPTs and BERTs that learned from text")
        return cls(path, model, tokenizer)

    def settled(self, recipe: Recipe, given: dict[str, Any]) -> dict[str, Any]:
        """The options that the model has settled -> {name: value}. Raises ValueError if those `given` contradict it."""
        config, size = self.model.config, self.tokenizer.vocab_size
        length = given.get("length", config.max_len)
        if length > config.max_len:
            raise ValueError(f"--length {length}: {self.path} reads at most {config.max_len} tokens; leave it out")
        characters = isinstance(self.tokenizer, CharacterTokenizer)
        kind = "characters" if characters else "bytes" if size == SMALLEST else "bpe"
        flat = flat_fields(config)
        options = {name: flat.get(name) for name in SETTLED} | {"length": length, "tokenizer": kind}
        options["vocab_size"] = size if kind == "bpe" and size > SMALLEST else None
        for name, value in options.items():
            if given.get(name, value) != value:
                has = "none" if value is None else value
                raise ValueError(f"{option_name(name)} {given[name]}: {self.path} has {has}; leave it out")
        return {name: value for name, value in options.items() if hasattr(recipe.defaults, name)}

    def fitting(self, recipe: Recipe, given: dict[str, Any]) -> tuple[Any, list[str]]:
        """The defaults of a run that starts from here, and lines that say why they are these; see `Recipe.fitting`."""
        settled = self.settled(recipe, given)
        defaults, reasons = recipe.fitting({**given, **settled})
        peak = float(f"{PEAK * min(1, WIDTH / self.model.config.d_model):.2g}")
        if "peak" not in given:
            why = f"{PEAK} up to a d_model of {WIDTH}, to learn nearly as much and forget less of the older text"
            reasons = [*reasons, f"--peak {peak}: {why}"]
        return dataclasses.replace(defaults, **settled, peak=peak), reasons

    def config(self, model_class: Any, dropout: float) -> Any:
        """The model's configuration with another rate of dropout. ValueError unless it is a `model_class`."""
        wanted, old = getattr(model_class, "func", model_class), type(self.model)
        if old is not wanted:
            raise ValueError(f"{self.path} is a {old.__name__}, and this task trains a {wanted.__name__}")
        return dataclasses.replace(self.model.config, dropout=dropout)

    def copy(self, model_class: Any, config: Any, seed: int) -> Any:
        """A model of this `config` with a copy of the weights, and a new head if the older one is for other targets."""
        old, dtype = self.model.state_dict(), self.model.parameters()[0].data.dtype
        segments = {name: count for name, count in getattr(self.model, "options", {}).items() if name == "num_segments"}
        model = model_class(config, **segments, seed=seed, dtype=dtype)
        state = model.state_dict()
        for name, array in state.items():
            if not name.startswith("head.") or np.shape(old.get(name)) == array.shape:
                state[name] = old[name]
        model.load_state_dict(state)
        return model
