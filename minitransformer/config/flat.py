"""A configuration as flat fields with a name each, as files and command lines have it, and back."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from minitransformer.config.base import ModelConfig
from minitransformer.config.choices import Choice

FLAT = {  # flat name: (the configuration's field, the field of its value)
    "rope_base": ("positions", "base"),
    "rope_factor": ("positions", "factor"),
    "rope_original_len": ("positions", "original_len"),
    "window": ("attention", "window"),
    "stride": ("attention", "stride"),
    "num_global": ("attention", "num_global"),
    "full_layers": ("attention", "full_layers"),
    "window_rope_base": ("attention", "rope_base"),
    "num_experts": ("experts", "count"),
    "experts_per_token": ("experts", "per_token"),
    "renormalize_experts": ("experts", "renormalize"),
    "expert_scores": ("experts", "scores"),
    "balance_weight": ("experts", "balance"),
    "z_weight": ("experts", "z_loss"),
}


def flat_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields of a configuration, with those of its choices among them: {"positions": "rope", "rope_base": ...}."""
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    numbers = {
        name: getattr(fields[field], own)
        for name, (field, own) in FLAT.items()
        if isinstance(fields.get(field), Choice) and hasattr(fields[field], own)
    }
    fields.pop("experts", None)  # `num_experts` says whether there are any
    return {name: str(value) if isinstance(value, Choice) else value for name, value in fields.items()} | numbers


def nested_fields(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a configuration from flat ones. Raises ValueError or TypeError for numbers that are not allowed.

    Numbers of a choice that is not made are left out: older files have all of them, without effect.
    """
    fields = {name: value for name, value in flat.items() if name not in FLAT}
    if flat.get("num_experts") is not None:
        fields["experts"] = "experts"
    in_window = flat.get("window_rope_base")
    if in_window is not None and not flat.get("full_layers"):  # then all layers have these angles
        flat = {**flat, "rope_base": in_window, "rope_factor": 1.0, "rope_original_len": None, "window_rope_base": None}
    if flat.get("positions") != "rope":
        flat = {**flat, "window_rope_base": None}
    for field in ("positions", "attention", "experts"):
        kind = Choice.kinds.get(fields[field]) if isinstance(fields.get(field), str) else None
        if kind:
            known = {own.name for own in dataclasses.fields(kind)}
            numbers = {own: flat[name] for name, (of, own) in FLAT.items() if of == field and name in flat}
            fields[field] = kind(**{own: value for own, value in numbers.items() if own in known})
    return _renamed(fields)


def _renamed(fields):
    """The fields without those that only older files have."""
    fields.pop("label_smoothing", None)  # version 0.1 stored it here; now it belongs to the loss
    if fields.pop("starts_with_padding", False):  # as T5 was stored before models had a `start`
        fields["start"] = 0
    if not fields.pop("tie_output", True) and fields.get("tie_embeddings", True):
        fields["tie_embeddings"] = "inputs"
    return fields
