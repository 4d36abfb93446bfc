"""Putting a training away while it runs, and taking it up again where it was."""

import contextlib
import signal
from pathlib import Path

from minitransformer.checks import check_integer
from minitransformer.training.checkpoint import load_more, save_checkpoint

SUFFIX = ".safetensors"


class Stopped(Exception):
    """Training was asked to stop, and has been put away; `path` is the file."""

    def __init__(self, path, step):
        super().__init__(f"stopped after step {step:,}, saved {path}")
        self.path = path


class Keeper:
    """Puts a session away in `folder` every so many steps, and when the process is asked to end.

    The files are called step-00000400.safetensors and so on, and are models like any other. The newest `keep` of them
    stay. `about` is what JSON can hold and whoever takes the training up again must know.
    """

    def __init__(self, folder, every, keep=2, about=None):
        for name, value in (("every", every), ("keep", keep)):
            check_integer(name, value, least=1)
        self.folder, self.every, self.keep = Path(folder), every, keep
        self.about = about or {}
        self.asked = False  # to stop

    def after_step(self, session):
        """Save, if it is time. Raises Stopped, with everything saved, if the process was asked to end."""
        if self.asked and not session.is_done:
            raise Stopped(self.save(session), session.step)
        if session.step % self.every == 0 and not session.is_done:
            self.save(session)

    def save(self, session):
        """Write the session, then take the oldest files away -> the path."""
        arrays, facts = session.state()
        path = self.folder / f"step-{session.step:08d}{SUFFIX}"
        save_checkpoint(path, session.trainer.model, arrays, training=facts, about=self.about)
        for old in steps_in(self.folder)[: -self.keep]:
            old.unlink()
        return path

    @contextlib.contextmanager
    def listening(self):
        """Inside a `with` block Ctrl-C and SIGTERM end the training after the step that is being made.

        A second one ends it at once. Nothing is done in threads other than the main one, which get no signals.
        """
        before = {}

        def ask(number, frame):
            self.asked = True
            for each, handler in before.items():
                signal.signal(each, handler)

        with contextlib.suppress(ValueError):  # not in the main thread
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def steps_in(folder):
    """The files that a Keeper has left in `folder`, the oldest first."""
    return sorted(Path(folder).glob(f"step-*{SUFFIX}"))


def newest(path):
    """`path`, if it is a file, or the newest file in the folder. FileNotFoundError where there is none."""
    path = Path(path)
    if path.is_dir():
        files = steps_in(path)
        if not files:
            raise FileNotFoundError(f"there is nothing to resume in {path}: no file step-*{SUFFIX}")
        return files[-1]
    return path


def read_session(path):
    """What a Keeper has saved -> (model, its arrays, its facts, `about`). ValueError if `path` holds no training."""
    model, metadata, arrays = load_more(path)
    if "training" not in metadata:
        raise ValueError(f"{path} is a model that has been trained to its end: there is nothing to resume")
    for name in ("training", "about"):
        if not isinstance(metadata.get(name), dict):
            raise ValueError(f"{path} does not say how its training went: its {name} must be a JSON object")
    return model, arrays, metadata["training"], metadata["about"]
