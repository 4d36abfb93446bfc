"""What every kind of training asks of the command line: threads, and how it is put away and taken up again."""

from pathlib import Path
from typing import NamedTuple

from minitransformer.files import check_folder
from minitransformer.process import threads_are_chosen
from minitransformer.training.checkpointer import Keeper, newest, read_session, steps_in

# not part of what was begun
HERE_AND_NOW = ("resume", "every", "keep", "fresh", "force", "json", "debug", "command", "detect_anomaly")
SLOWER = ("factor", "peak", "warmup")  # may be given anew, where the learning rate was too large
MOST_THREADS = 1024
SMALLER = ("accumulate",)  # may be given anew, where memory is too little


def choose_threads(arguments, small):
    """As the command line says, then as the environment says; else one for a small model, and NumPy's own number.

    The tiny model's matrix products take a quarter of a millisecond. Shared by two threads, training took 0.8 times
    as long on an idle machine, and eight times as long on one where another process kept a processor busy.
    """
    if arguments.threads is not None and not 1 <= arguments.threads <= MOST_THREADS:
        raise ValueError(f"--threads must be at least 1 and at most {MOST_THREADS}, got {arguments.threads}")
    if arguments.threads or threads_are_chosen():
        return arguments.threads
    return 1 if small else None


class Begun(NamedTuple):
    """A training that was put away."""

    model: object
    state: tuple  # the arrays and facts of its session
    about: dict


def add_keeping_arguments(parser):
    """How a training is put away, and taken up again."""
    group = parser.add_argument_group("putting away and going on")
    group.add_argument("--every", type=int, default=200, help="steps between two checkpoints (default 200)")
    group.add_argument("--keep", type=int, default=2, help="of the newest checkpoints (default 2)")
    group.add_argument(
        "--resume", metavar="RUN", type=Path, help="go on with a training, such as runs/reverse.training"
    )
    group.add_argument("--fresh", action="store_true", help="begin anew, and drop an unfinished training of this task")


def take_up(arguments):
    """With --resume, put the options with which it was begun into `arguments` -> Begun; else None.

    A learning rate that is given with --resume stays, and so does --accumulate: then it goes on otherwise than it was
    begun.
    """
    if arguments.resume is None:
        if arguments.task is None:
            raise ValueError("say what to learn, such as `train reverse`, or what to go on with: --resume RUN")
        return None
    if arguments.fresh:
        raise ValueError("--fresh begins anew and --resume goes on: give one of them")
    path = newest(arguments.resume)
    model, arrays, facts, about = read_session(path)
    begun = arguments_begun_with(path, facts, about)
    if arguments.task not in (None, begun["task"]):
        raise ValueError(f"{arguments.resume} is a training of {begun['task']}, not of {arguments.task}")
    for name, value in begun.items():
        if name in SLOWER + SMALLER and getattr(arguments, name) is not None:
            continue
        setattr(arguments, name, Path(value) if name == "plots" else value)
    arguments.runs = path.parent.parent
    for folder in (arguments.runs, arguments.plots):
        check_folder(folder)
    print(f"going on with {begun['task']} after step {facts['step']:,}", flush=True)
    return Begun(model, (arrays, facts), about)


def arguments_begun_with(path, facts, about):
    """The options of a training that was put away at `path`; ValueError if they are not all there."""
    begun = about.get("arguments")
    if not isinstance(begun, dict) or not isinstance(facts.get("step"), int):
        raise ValueError(f"{path} does not say with which arguments it was begun, or how far it has come")
    for name in ("task", "plots", "seed"):
        if not isinstance(begun.get(name), int if name == "seed" else str):
            raise ValueError(f"{path} does not say with which {name} it was begun, but has {begun.get(name)!r}")
    return begun


def make_keeper(arguments, **about):
    """A Keeper for the task in the folder of runs. ValueError if another training is there, unfinished."""
    folder = training_folder(arguments)
    unfinished = steps_in(folder)
    if unfinished and arguments.fresh:
        drop(folder)
    elif unfinished and arguments.resume is None:
        raise ValueError(
            f"{folder} holds a training that has not ended: go on with `minitransformer train --resume {folder}`, "
            "or drop it with --fresh"
        )
    options = {name: value for name, value in vars(arguments).items() if name not in HERE_AND_NOW}
    options = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return Keeper(folder, arguments.every, arguments.keep, {"arguments": options, **about})


def training_folder(arguments):
    """Where checkpoints of the task are while it is being learnt."""
    return arguments.runs / f"{arguments.task}.training"


def drop(folder):
    """Take the checkpoints of a training away, once the model itself is saved."""
    for path in (*steps_in(folder), *folder.glob("*.partial")):  # a process that was killed leaves half a file
        path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
