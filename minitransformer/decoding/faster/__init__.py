"""The same tokens sooner: key-value caches, folded weights, speculation."""

import importlib
from typing import Any

from minitransformer.models.changed import changed_layers, class_name

# the exact class of a model: the decoding state that keeps what the model has computed for earlier tokens
STATES = {
    "minitransformer.models.transformer.Transformer": "transformer.TransformerState",
    "minitransformer.models.since_2017.gpt.GPT": "gpt.GPTState",
    "minitransformer.models.before_2017.convolutional.ConvLM": "before_2017.ConvState",
    "minitransformer.models.before_2017.recurrent.Seq2Seq": "before_2017.RecurrentState",
}


def faster_state(model: Any) -> Any:
    """The class of the decoding state for `model`; None for other models, and if a layer has been changed.

    These states go around `forward`, so they are right for the library's own layers alone.
    """
    module, _, name = STATES.get(class_name(model), "").partition(".")
    if not name or changed_layers(model):
        return None
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
