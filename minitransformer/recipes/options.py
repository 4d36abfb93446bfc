"""The options of a training task: a frozen dataclass. Its command line and `--help` are made from the fields."""

import argparse
import dataclasses
import math
import types
import typing
from pathlib import Path
from typing import Any

from minitransformer.checks import check_rate

LARGEST = 2**63 - 1
MAX_THREADS = 1024
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FOLDER"}
NOT_OPTIONS = ("command", "recipe", "resume", "backend", "json", "debug")  # attributes that are not the recipe's


def option(default: Any, help: str, resumable: bool = False, choices: tuple[str, ...] = ()) -> Any:
    """A field with its help text; `resumable` if it may be changed when a run is resumed."""
    return dataclasses.field(default=default, metadata={"help": help, "resumable": resumable, "choices": choices})


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """The options of every training task. A recipe adds its own fields and sets its own defaults.

    Raises ValueError or TypeError, naming the option, for invalid values.
    """

    steps: int = option(1000, "number of training steps")
    batch_size: int = option(64, "sequences in a batch")
    warmup: int = option(100, "warm-up steps of the learning rate", resumable=True)
    dropout: float = option(0.0, "dropout rate, P_drop in the paper")
    label_smoothing: float = option(0.0, "label smoothing, epsilon_ls in the paper")
    weight_decay: float = option(0.0, "weight decay of the matrices, as in AdamW; not in the paper")
    positions: str = option("sinusoidal", "positional encoding")
    threads: int | None = option(None, "number of threads (default: OMP_NUM_THREADS, or 1 for tiny models)")
    grad_accumulation_steps: int = option(1, "micro batches per batch; more of them need less memory", resumable=True)
    checkpoint_interval: int = option(200, "steps between checkpoints", resumable=True)
    keep_checkpoints: int = option(2, "number of checkpoints to keep, the newest ones", resumable=True)
    detect_anomaly: bool = option(
        False, "name the first operation that produces NaN or infinity (slow)", resumable=True
    )
    force: bool = option(False, "train even if the free memory seems too small", resumable=True)
    fresh: bool = option(False, "start again, and delete the unfinished run of this task")
    seed: int = option(0, "seed of all random numbers")
    runs: Path = option(Path("runs"), "save the run in FOLDER/TASK")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, name = getattr(self, field.name), option_name(field.name)
            if isinstance(value, float) and math.isinf(value):
                raise ValueError(f"{name} must be finite, got {value}")
            if isinstance(value, int) and value > LARGEST:
                raise ValueError(f"{name} must be at most {LARGEST}, got {value}")
            choices = field.metadata["choices"]
            if choices and value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        for field_name in ("steps", "batch_size", "warmup", "checkpoint_interval", "keep_checkpoints"):
            if getattr(self, field_name) < 1:
                raise ValueError(f"{option_name(field_name)} must be at least 1, got {getattr(self, field_name)}")
        for field_name in ("dropout", "label_smoothing"):
            check_rate(option_name(field_name), getattr(self, field_name))
        if not self.weight_decay >= 0:
            raise ValueError(f"--weight-decay must be at least 0, got {self.weight_decay}")
        if not 1 <= self.grad_accumulation_steps <= self.batch_size:
            raise ValueError(
                f"--grad-accumulation-steps must be from 1 to --batch-size = {self.batch_size}, "
                f"got {self.grad_accumulation_steps}"
            )
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"--threads must be at least 1 and at most {MAX_THREADS}, got {self.threads}")
        if self.seed < 0:
            raise ValueError(f"--seed must be at least 0, got {self.seed}")

    @property
    def micro_batch_size(self) -> int:
        """The largest number of sequences that are computed at one time."""
        return -(-self.batch_size // self.grad_accumulation_steps)


def option_name(field_name: str) -> str:
    """ "batch_size" -> "--batch-size"."""
    return f"--{field_name.replace('_', '-')}"


def add_options(parser: Any, defaults: TrainOptions, resumable_only: bool = False, hidden: bool = False) -> None:
    """Add an option to `parser` for each field of `defaults`, unless it has one of this name already.

    With `resumable_only` only for the fields that a resumed run may change, without defaults, which are the run's own
    values. With `hidden` the help does not show them. An option that is not given leaves no attribute in the parsed
    arguments.
    """
    for field in dataclasses.fields(defaults):
        if resumable_only and not field.metadata["resumable"]:
            continue
        name, kind, default = option_name(field.name), _kind(field), getattr(defaults, field.name)
        help, absent = field.metadata["help"], argparse.SUPPRESS
        if name in parser._option_string_actions:  # two recipes share it
            continue
        if default is not None and kind is not bool and "default" not in help and not resumable_only:
            help += f" (default {default})"
        if hidden:
            help = absent
        if kind is bool:
            parser.add_argument(name, dest=field.name, action="store_true", default=absent, help=help)
            continue
        parser.add_argument(name, dest=field.name, type=kind, default=absent, metavar=METAVARS[kind], help=help)


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given on a command line, {name of the field: value}."""
    return {name: value for name, value in vars(arguments).items() if name not in NOT_OPTIONS}


def to_json(options: TrainOptions) -> dict[str, Any]:
    """The options as JSON serializable values."""
    values = dataclasses.asdict(options)
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def from_json(defaults: TrainOptions, values: dict[str, Any]) -> TrainOptions:
    """The options that `to_json` returned. Raises ValueError for a value of another type."""
    changes = {}
    for field in dataclasses.fields(defaults):
        value = values.get(field.name)
        if value is None:
            continue
        kind = _kind(field)
        if not isinstance(value, str if kind is Path else (int, float) if kind is float else kind):
            raise ValueError(f"its option {field.name} is {value!r}")
        changes[field.name] = kind(value)
    return dataclasses.replace(defaults, **changes)


def _kind(field: dataclasses.Field) -> Any:
    """The type of a field, without `| None`."""
    kind: Any = field.type
    if isinstance(kind, types.UnionType):
        (kind,) = (part for part in typing.get_args(kind) if part is not type(None))
    return kind
