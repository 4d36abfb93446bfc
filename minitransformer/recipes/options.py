"""The options of a training task: a frozen dataclass. Its command line, its help and its limits are in the fields."""

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
from minitransformer.config import ATTENTION, POSITIONS, nested_fields
from minitransformer.training import TrainingSettings

LARGEST = 2**63 - 1
MAX_THREADS = 1024
LONGEST_NAME = 100  # characters in the name of a run's folder
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FOLDER"}
OPTIMIZERS = ("adam", "muon")
LAYER_OPTIONS = ("attention", "window", "stride", "num_kv_heads", "share_layers")
USED_BY = {"window": ("windowed", "strided"), "stride": ("strided",)}  # the kinds of attention that need an option
NO_SCORES = ("relative", "rope", "alibi")  # positions that act on scores, which linear attention does not have

Check = Callable[[str, Any], Any]


def option(
    default: Any,
    help: str,
    check: Check | None = None,
    *,
    choices: Collection[str] = (),
    resumable: bool = False,
    identity: bool = True,
    advanced: bool = False,
) -> Any:
    """A field with its help text; check(name, value) raises an error for a value that is not allowed.

    A value must be one of the `choices`, if there are any; the help lists them. `resumable` says that the option may be
    changed when a run is resumed. `identity` says that it changes what is learned, so that runs that differ in it are
    kept in different folders. The help shows the `advanced` options after the others.
    """
    if choices:
        help, check = f"{help}: {', '.join(choices)}", partial(check_choice, allowed=choices)
    metadata = {"help": help, "check": check, "resumable": resumable, "identity": identity, "advanced": advanced}
    return dataclasses.field(default=default, metadata=metadata)


def check_positive(name: str, value: float) -> None:
    """ValueError unless `value` is greater than 0."""
    if not check_number(name, value) > 0:
        raise ValueError(f"{name} must be greater than 0, got {value}")


def check_not_negative(name: str, value: float) -> None:
    """ValueError unless `value` is at least 0."""
    if not check_number(name, value) >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")


def from_1_to(most: int) -> Check:
    """The check that a value is a whole number from 1 to `most`."""

    def check(name: str, value: int) -> None:
        if not 1 <= check_integer(name, value) <= most:
            raise ValueError(f"{name} must be from 1 to {most}, got {value}")

    return check


def check_folder_name(name: str, value: str) -> None:
    """ValueError unless `value` can be the name of a folder: no slash, no space, and neither ".." nor an option."""
    if not re.fullmatch(r"[^\W_][\w.-]*", value) or len(value) > LONGEST_NAME:
        raise ValueError(
            f"{name} must be at most {LONGEST_NAME} letters, digits, '.', '_' and '-', "
            f"and begin with a letter or digit, got {value!r}"
        )


at_least_1 = partial(check_integer, least=1)
of_the_computation = partial(option, identity=False, resumable=True, advanced=True)  # not of what is learned


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """The options of every training task. A recipe adds its own fields and sets its own defaults.

    Raises ValueError or TypeError, naming the option, for invalid values.
    """

    steps: int = option(1000, "number of training steps", at_least_1, resumable=True)
    minutes: float | None = option(
        None,
        "train for so many minutes, evaluations included: after each 20th of the steps, their number is changed to "
        "what fits, and the learning rate follows; the final test comes on top; with --resume, so many minutes more",
        check_positive,
        resumable=True,
    )
    batch_size: int = option(64, "sequences in a batch", at_least_1)
    warmup: int = option(100, "warm-up steps of the learning rate", at_least_1, resumable=True)
    dropout: float = option(0.0, "dropout rate, P_drop in the paper", check_rate)
    label_smoothing: float = option(0.0, "label smoothing, epsilon_ls in the paper", check_rate)
    positions: str = option("sinusoidal", "positional encoding", choices=POSITIONS)
    seed: int = option(0, "seed of all random numbers", partial(check_integer, least=0))
    runs: Path = option(Path("runs"), "save the run in FOLDER/NAME", identity=False)
    name: str | None = option(
        None,
        "name of the run's folder (default: the task, and the options that differ)",
        check_folder_name,
        identity=False,
    )
    overwrite: bool = option(
        False, "start again in the same folder; an old model stays until the new one is finished", identity=False
    )
    optimizer: str = option(
        "adam",
        "how the weights move: adam as in the paper; muon gives the matrices in the layers steps that move all their "
        "directions alike, at 10 times the learning rate, and leaves the rest to Adam",
        choices=OPTIMIZERS,
        advanced=True,
    )
    weight_decay: float = option(
        0.0, "weight decay of the matrices, as in AdamW; not in the paper", check_not_negative, advanced=True
    )
    attention: str = option("full", "kind of self-attention", choices=ATTENTION, advanced=True)
    window: int | None = option(
        None, "of windowed and strided attention: a token sees the nearest N", at_least_1, advanced=True
    )
    stride: int | None = option(None, "of strided attention: a token also sees every N-th", at_least_1, advanced=True)
    num_kv_heads: int | None = option(
        None,
        "heads of keys and values, each for a group of heads (default: one for each)",
        at_least_1,
        advanced=True,
    )
    share_layers: bool = option(False, "use one layer over and over in each stack, as in ALBERT", advanced=True)
    threads: int | None = of_the_computation(
        None,
        "number of threads (default: as many as the model keeps busy, at most OMP_NUM_THREADS)",
        from_1_to(MAX_THREADS),
    )
    grad_accumulation_steps: int = of_the_computation(
        1, "micro batches per batch; more of them need less memory", check_integer
    )
    recompute: bool = of_the_computation(
        False, "keep each layer's input alone, and compute the layer again in the backward pass: less memory, more time"
    )
    deterministic: bool = of_the_computation(
        False, "add up the parts of a gradient in a fixed order, for bit-identical results"
    )
    shard_optimizer: bool = of_the_computation(
        False, "with mpiexec: share out Adam's running means instead of copying them, to save memory (ZeRO stage 1)"
    )
    timeout: float = of_the_computation(
        10.0, "with mpiexec: minutes that a process may let the others wait, before all end", check_positive
    )
    checkpoint_interval: int = of_the_computation(200, "steps between checkpoints", at_least_1)
    keep_checkpoints: int = of_the_computation(2, "number of checkpoints to keep, the newest ones", at_least_1)
    detect_anomaly: bool = of_the_computation(False, "name the first operation that produces NaN or infinity (slow)")
    force: bool = of_the_computation(False, "train even if the free memory seems too small")

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
        if self.shard_optimizer and self.optimizer != "adam":
            raise ValueError(f"--shard-optimizer needs --optimizer adam, got {self.optimizer}")
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

    def layer_fields(self) -> dict[str, Any]:
        """The fields of the model's configuration that say how its layers are made."""
        return nested_fields({name: getattr(self, name) for name in LAYER_OPTIONS})

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
            recompute=self.recompute,
            deterministic=self.deterministic,
        )


def option_name(field_name: str) -> str:
    """ "batch_size" -> "--batch-size", and "from_" -> "--from", which is a word of Python's."""
    return f"--{field_name.removesuffix('_').replace('_', '-')}"


def add_options(parser: argparse.ArgumentParser, defaults: TrainOptions) -> None:
    """Add an option to `parser` for each field of `defaults`."""
    advanced = parser.add_argument_group("advanced options")
    for field in dataclasses.fields(defaults):
        group = advanced if field.metadata["advanced"] else parser
        add_option(group, field, getattr(defaults, field.name))


def add_option(parser: Any, field: dataclasses.Field, default: Any = None, shown: bool = True) -> None:
    """Add the option of one field to a parser, or to a group of it. The help names the `default` if there is one.

    An option that is not given leaves no attribute in the parsed arguments.
    """
    kind, help = _kind(field), field.metadata["help"]
    if default is not None and kind is not bool and "default" not in help:
        help += f" (default {default})"
    help = help if shown else argparse.SUPPRESS
    reads: dict[str, Any] = {"action": "store_true"} if kind is bool else {"type": kind, "metavar": METAVARS[kind]}
    parser.add_argument(option_name(field.name), dest=field.name, default=argparse.SUPPRESS, help=help, **reads)


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
