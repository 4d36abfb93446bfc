"""Made-up command lines: each is refused, or comes to where its work would begin."""

import pytest

from minitransformer.cli import COMMANDS
from tests.refusals.ending import WrongResultError, demand
from tests.refusals.trying import is_one_line, run


class ReachedError(Exception):
    """All checks are behind it: here the work would begin."""


WORK = (
    "minitransformer.recipes.recipe.train",
    "experiments.speed.measure",
    "experiments.curves.loss_curves",
    "experiments.lengths.train_all",
    "minitransformer.cli.lesson.run_lesson",
    "minitransformer.cli.gradcheck.tqdm",
    "minitransformer.cli.check.check_all",
    "minitransformer.cli.explore.serve",
)
WORDS = ["", "a\nb", "\udcff", "1" * 40]
WORDS += ["ä", "copy", "reverse", "shakespeare", "masked", "06", "99", "tiny", "base", "model", "bad", "folder"]
WORDS += ["-1", "0", "1", "2", "4", "3.5", "1e3", "nan", "inf", "x", "post", "gpt", "rope"]
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
            patch.setattr(work, _reached)
        try:
            status, _, said = run(arguments)
        except ReachedError:
            status, said = 0, ""
    if status == 2:
        raise ValueError("refused") if is_one_line(said) else WrongResultError(f"{arguments}: {said!r}")
    demand(status in (0, 1) and said == "", f"{arguments}: status {status}, {said!r}")


def _reached(*arguments, **options):
    raise ReachedError
