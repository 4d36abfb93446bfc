"""Made-up settings and command lines: each is refused, or does what it says."""

import numpy as np
import pytest

from minitransformer.cli import COMMANDS
from minitransformer.config import POSITIONS
from minitransformer.layers.feed_forward import ACTIVATIONS
from minitransformer.models import GPT, TransformerConfig
from tests.refusals.ending import WrongResultError, demand
from tests.refusals.trying import is_one_line, run

VALUES = (None, True, False, -1, 0, 1, 2, 3, 4, 8, 9, 0.0, 0.1, 1.0, 2.5, -0.1, 10**9, 10**20, float("nan"))
VALUES += (float("inf"), "", "x", "pre", "post", "rms", "rope", "alibi", "none", "gelu", "swiglu", [], {}, (1,), b"x")
FITTING = {"vocab_size": (1, 2, 11, 100), "d_model": (2, 4, 8, 10), "num_heads": (1, 2, 4), "d_ff": (1, 6)}
FITTING |= {"num_layers": (1, 2, 3), "max_len": (1, 9), "dropout": (0, 0.5), "attention_dropout": (0.0, 0.9)}
FITTING |= {"ffn_dropout": (0.0, 0.2), "norm": ("pre", "post"), "norm_eps": (0, 1e-5, 10)}
FITTING |= {"positions": tuple(POSITIONS), "normalization": ("layer", "rms"), "activation": tuple(ACTIVATIONS)}
FITTING |= {"final_norm": (None, True, False)}
FIELDS = tuple(TransformerConfig.__dataclass_fields__)


def configurations(rng, good):
    """Any configuration is refused, or makes a model whose logits are finite."""
    fields = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 9}
    for _ in range(rng.integers(1, 4)):
        name = FIELDS[rng.integers(len(FIELDS))]
        values = FITTING.get(name, (True, False)) if rng.random() < 0.8 else VALUES
        fields[name] = values[rng.integers(len(values))]
    config = TransformerConfig(**fields)
    if max(config.vocab_size, config.d_model, config.d_ff, config.num_layers, config.max_len) > 1000:
        return  # a right one, and too large to be tried
    demand(all(type(value) is not str or value for value in fields.values()), "an empty name was taken")
    ids = np.array([[0] * min(3, config.max_len)])
    with np.errstate(all="ignore"):  # an eps of 0 may divide by 0, and huge numbers overflow
        logits = GPT(config)(ids)
    demand(logits.shape == (*ids.shape, config.vocab_size), "logits of another shape")
    demand(np.isfinite(logits).all() or config.norm_eps == 0, "logits that are not finite")


class ReachedError(Exception):
    """All checks are behind it: here the work would begin."""


WORK = (
    "recipes.recipe.train",
    "experiments.speed.measure",
    "experiments.curves.loss_curves",
    "experiments.lengths.train_all",
    "cli.lesson.run_lesson",
    "cli.gradcheck.tqdm",
    "cli.check.check_all",
    "cli.explore.serve",
)
WORDS = ("", "ä", "a\nb", "\udcff", "1" * 40, "copy", "reverse", "shakespeare", "masked", "06", "99", "tiny", "base")
WORDS += (
    "model",
    "bad",
    "folder",
    "-1",
    "0",
    "1",
    "2",
    "4",
    "3.5",
    "1e3",
    "nan",
    "inf",
    "x",
    "post",
    "gpt",
    "rope",
    "ä",
)
SOUND = """
train copy
train masked --text text --length 8 --d-model 8 --num-layers 1
train shakespeare --text text --length 8 --d-model 8 --num-layers 1
summary tiny
generate model --length 2 --prompt 1
gradcheck relu
bench tiny
experiment lengths
devices
lesson 06
init folder
start 06
check 06
hint 06
progress
solution 06
explore --word top
""".strip().splitlines()
SWITCHES = "overwrite json greedy activations fast quick memory give-up no-browser mine share-layers"
VALUES_THAT_FIT = {
    "4": "steps batch-size warmup d-model num-layers threads",
    "2": "checkpoint-interval keep-checkpoints grad-accumulation-steps seed top-k no-repeat vocab-size jobs",
    "0.5": "weight-decay label-smoothing factor dropout peak temperature top-p seconds",
    "folder": "runs plots folder name",
    "3": "shape length",
    "1": "prompt nonsense",
}
OPTIONS = {
    **dict.fromkeys([f"--{name}" for name in SWITCHES.split()]),
    **{f"--{name}": value for value, names in VALUES_THAT_FIT.items() for name in names.split()},
    **{"--norm": "pre", "--positions": "alibi", "--model": "gpt", "--config": "tiny"},
    **{"--resume": "model", "--text": "text", "--backend": "numpy"},
}


def command_lines(rng, good):
    """Any command line is refused with status 2 in one line, or comes to where its work would begin."""
    arguments = SOUND[rng.integers(len(SOUND))].split()
    if rng.random() < 0.3:
        arguments = [list(COMMANDS)[rng.integers(len(COMMANDS))], WORDS[rng.integers(len(WORDS))]]
    for _ in range(rng.integers(0, 4)):
        option = list(OPTIONS)[rng.integers(len(OPTIONS))]
        value = OPTIONS[option] if rng.random() < 0.8 else WORDS[rng.integers(len(WORDS))]
        arguments += [option, *([] if value is None else [value])]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(good.folder)
        patch.setattr("minitransformer.exercises.workshop.my_exercises", lambda: good.folder / "my_exercises")
        for work in WORK:
            patch.setattr(f"minitransformer.{work}", _reached)
        try:
            status, _, said = run(arguments)
        except ReachedError:
            status, said = 0, ""
    if status == 2:
        raise ValueError("refused") if is_one_line(said) else WrongResultError(f"{arguments}: {said!r}")
    demand(status in (0, 1) and said == "", f"{arguments}: status {status}, {said!r}")


def _reached(*arguments, **options):
    raise ReachedError
