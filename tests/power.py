"""What is on the disk when the power fails during a training, at any of its system calls, and whether it is enough.

The disk is simulated. A file holds what it held when it was last synced, and a folder lists either the files that it
had when it was last synced, or those that it has now: the system may keep the rest in memory for as long as it likes.
"""

import itertools
import os
import stat
from pathlib import Path

from tests.faults import Disk, saved_before


class DurableDisk(Disk):
    """A Disk that knows what would be left.

    `states` has two for the moment before each call: [(calls until then, {path: bytes})].
    """

    def __init__(self):
        super().__init__(self.remember)
        self.counter, self.files, self.contents, self.listed, self.states = itertools.count(), {}, {}, {}, []

    def remember(self, call):
        """Note the two states before a call."""
        now = {
            path: [each.name for each in path.iterdir()] for path in (self.here, *self.here.rglob("*")) if path.is_dir()
        }
        names = {path: self.list_of(path) for path in now}
        for lists in (self.listed, names):
            self.states.append((list(self.calls), dict(self.walk(lists, self.here))))

    def list_of(self, folder):
        """{name: number of the file, or None for a folder}."""
        return {path.name: None if path.is_dir() else self.files.get(path.stat().st_ino) for path in folder.iterdir()}

    def walk(self, lists, folder):
        """The files below `folder`, and what they hold."""
        for name, number in lists.get(folder, {}).items():
            if number is None:
                yield from self.walk(lists, folder / name)
            else:
                yield (folder / name).relative_to(self.here), self.contents.get(number, b"")

    def _builtins_open(self, plain, file, mode="r", *arguments, **options):
        opened = super()._builtins_open(plain, file, mode, *arguments, **options)
        if "w" in mode or "a" in mode:
            self.files[os.fstat(opened.fileno()).st_ino] = next(self.counter)
        return opened

    def _os_fsync(self, plain, descriptor):
        super()._os_fsync(plain, descriptor)
        state = os.fstat(descriptor)
        path = Path(self.paths[descriptor]).absolute()
        if stat.S_ISDIR(state.st_mode):
            self.listed[path] = self.list_of(path)
        else:
            self.contents[self.files[state.st_ino]] = path.read_bytes()


def distinct(states):
    """Each state once, as (the files that were safely saved by then, {path: bytes})."""
    found = []
    for calls, state in states:
        safe = saved_before(calls)
        if (safe, state) not in found:
            found.append((safe, state))
    return found


def restore(state, folder):
    """Write the files of a state."""
    for path, content in state.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
