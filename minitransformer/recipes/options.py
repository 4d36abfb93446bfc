"""The options of a training task: a frozen dataclass. Its command line and `--help` are made from the fields."""

import argparse
import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from minitransformer.checks import check_choice, check_integer, check_number, check_rate
from minitransformer.config import ATTENTION
from minitransformer.training import TrainingSettings

LARGEST = 2**63 - 1
MAX_THREADS = 1024
LONGEST_NAME = 100  # characters in the name of a run's folder
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FOLDER"}
ATTENTION_OPTIONS = ("attention", "window", "stride", "num_kv_heads")
USED_BY = {"window": ("windowed", "strided"), "stride": ("strided",)}  # the kinds of attention that need an option
NO_SCORES = ("relative", "rope", "alibi")  # positions that act on scores, which linear attention does not have
NOT_OPTIONS = ("command", "recipe", "resume", "backend", "json", "debug")  # attributes that are not the recipe's


def option(
    default: Any,
    help: str,
    check: Callable[[str, Any], Any] | None = None,
    *,
    resumable: bool = False,
    identity: bool = True,
) -> Any:
    """A field with its help text; check(name, value) raises an error for a value that is not allowed.

    `resumable` says that the option may be changed when a run is resumed. `identity` says that it changes what is
    learned, so that runs that differ in it are kept in different folders.
    """
    metadata = {"help": help, "check": check, "resumable": resumable, "identity": identity}
    return dataclasses.field(default=default, metadata=metadata)


def check_positive(name: str, value: float) -> None:
    """ValueError unless `value` is greater than 0."""
    if not check_number(name, value) > 0:
        raise ValueError(f"{name} must be greater than 0, got {value}")


def check_not_negative(name: str, value: float) -> None:
    """ValueError unless `value` is at least 0."""
    if not check_number(name, value) >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")


def check_threads(name: str, value: int) -> None:
    """ValueError unless `value` is from 1 to MAX_THREADS."""
    if not 1 <= check_integer(name, value) <= MAX_THREADS:
        raise ValueError(f"{name} must be at least 1 and at most {MAX_THREADS}, got {value}")


def check_folder_name(name: str, value: str) -> None:
    """ValueError unless `value` can be the name of a folder: no slash, no space, and neither ".." nor an option."""
    if not re.fullmatch(r"[^\W_][\w.-]*", value) or len(value) > LONGEST_NAME:
        raise ValueError(
            f"{name} must be at most {LONGEST_NAME} letters, digits, '.', '_' and '-', "
            f"and begin with a letter or digit, got {value!r}"
        )


def one_of(choices: Collection[str]) -> Callable[[str, Any], Any]:
    """The check that a value is among `choices`."""
    return partial(check_choice, allowed=choices)


at_least_1 = partial(check_integer, least=1)


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """The options of every training task. A recipe adds its own fields and sets its own defaults.

    Raises ValueError or TypeError, naming the option, for invalid values.
    """

    steps: int = option(1000, "number of training steps", at_least_1, resumable=True)
    minutes: float | None = option(
        None,
        "train for about so many minutes: as many steps as fit, by the speed that is measured first",
        check_positive,
    )
    batch_size: int = option(64, "sequences in a batch, of all processes together", at_least_1)
    warmup: int = option(100, "warm-up steps of the learning rate", at_least_1, resumable=True)
    dropout: float = option(0.0, "dropout rate, P_drop in the paper", check_rate)
    label_smoothing: float = option(0.0, "label smoothing, epsilon_ls in the paper", check_rate)
    weight_decay: float = option(0.0, "weight decay of the matrices, as in AdamW; not in the paper", check_not_negative)
    positions: str = option("sinusoidal", "positional encoding")
    attention: str = option("full", f"kind of self-attention: {', '.join(ATTENTION)}", one_of(ATTENTION))
    window: int | None = option(None, "of windowed and strided attention: a token sees the nearest N", at_least_1)
    stride: int | None = option(None, "of strided attention: a token also sees every N-th", at_least_1)
    num_kv_heads: int | None = option(
        None, "heads of keys and values, each for a group of heads (default: one for each)", at_least_1
    )
    threads: int | None = option(
        None,
        "number of threads of each process (default: OMP_NUM_THREADS, or as many as the model keeps busy)",
        check_threads,
        resumable=True,
        identity=False,
    )
    grad_accumulation_steps: int = option(
        1, "micro batches per batch; more of them need less memory", check_integer, resumable=True, identity=False
    )
    deterministic: bool = option(
        False,
        "add up the gradients of processes and of micro batches in a fixed order, for bit-identical results",
        resumable=True,
        identity=False,
    )
    shard_optimizer: bool = option(
        False,
        "spread Adam's running means over the processes, to save memory (ZeRO stage 1)",
        resumable=True,
        identity=False,
    )
    checkpoint_interval: int = option(200, "steps between checkpoints", at_least_1, resumable=True, identity=False)
    keep_checkpoints: int = option(
        2, "number of checkpoints to keep, the newest ones", at_least_1, resumable=True, identity=False
    )
    detect_anomaly: bool = option(
        False, "name the first operation that produces NaN or infinity (slow)", resumable=True, identity=False
    )
    force: bool = option(False, "train even if the free memory seems too small", resumable=True, identity=False)
    overwrite: bool = option(
        False, "start again in the same folder; an old model stays until the new one is finished", identity=False
    )
    seed: int = option(0, "seed of all random numbers", partial(check_integer, least=0))
    runs: Path = option(Path("runs"), "save the run in FOLDER/NAME", identity=False)
    name: str | None = option(
        None,
        "name of the run's folder (default: the task, and the options that differ)",
        check_folder_name,
        identity=False,
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, name, check = getattr(self, field.name), option_name(field.name), field.metadata["check"]
            if isinstance(value, float) and math.isinf(value):
                raise ValueError(f"{name} must be finite, got {value}")
            if isinstance(value, int) and value > LARGEST:
                raise ValueError(f"{name} must be at most {LARGEST}, got {value}")
            if check and value is not None:
                check(name, value)
        if not 1 <= self.grad_accumulation_steps <= self.batch_size:
            raise ValueError(
                f"--grad-accumulation-steps must be from 1 to --batch-size = {self.batch_size}, "
                f"got {self.grad_accumulation_steps}"
            )
        self._check_attention()

    def _check_attention(self):
        for name, kinds in USED_BY.items():
            given = getattr(self, name) is not None
            if given and self.attention not in kinds:
                raise ValueError(f"{option_name(name)} needs --attention {' or '.join(kinds)}, got {self.attention}")
            if not given and self.attention in kinds:
                raise ValueError(f"--attention {self.attention} needs {option_name(name)}")
        if self.attention == "linear" and self.positions in NO_SCORES:
            raise ValueError(f"--attention linear needs --positions sinusoidal, learned or none, got {self.positions}")

    def attention_fields(self) -> dict[str, Any]:
        """The fields of the model's configuration that say how it attends."""
        return {name: getattr(self, name) for name in ATTENTION_OPTIONS}

    @property
    def micro_batch_size(self) -> int:
        """The largest number of sequences that are computed at one time."""
        return self.settings().micro_batch_size

    def settings(self, eval_interval: int = 1) -> TrainingSettings:
        """The settings of the training loop."""
        return TrainingSettings(
            steps=self.steps,
            batch_size=self.batch_size,
            seed=self.seed,
            grad_accumulation_steps=self.grad_accumulation_steps,
            eval_interval=eval_interval,
            detect_anomaly=self.detect_anomaly,
            deterministic=self.deterministic,
        )


def option_name(field_name: str) -> str:
    """ "batch_size" -> "--batch-size"."""
    return f"--{field_name.replace('_', '-')}"


def add_options(
    parser: Any,
    defaults: TrainOptions,
    resumable_only: bool = False,
    hidden: bool = False,
    only: Collection[str] | None = None,
) -> None:
    """Add an option to `parser` for each field of `defaults`, unless it has one of this name already.

    `only` names the fields to add; the default is all. With `resumable_only` only for the fields that a resumed run may
    change, without defaults, which are the run's own values. With `hidden` the help does not show them. An option that
    is not given leaves no attribute in the parsed arguments.
    """
    for field in dataclasses.fields(defaults):
        if (resumable_only and not field.metadata["resumable"]) or (only is not None and field.name not in only):
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
