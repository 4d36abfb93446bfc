"""A lock that lets one training at a time use a folder.

The system's own lock on the file `lock` decides. The system releases it when the process ends, however it ends. So the
file that a killed process leaves behind is no lock, even if another process has the same number by now. The text in the
file says whose lock it is. Some network file systems keep the locks of each computer apart, so a file from another
computer counts as a lock until somebody deletes it.
"""

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from minitransformer.system.files import check_folder, named_in_errors

if sys.platform == "win32":
    import msvcrt

    def _lock(file: TextIO) -> None:
        file.seek(2**30)  # beyond the text, because other processes cannot read a byte that is locked
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error

else:
    import fcntl

    def _lock(file: TextIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A `with` block in which no other training can use `folder`.

    It creates the folder, and removes it at the end if nothing was saved there. Raises ValueError, which says who uses
    the folder, if another training does, and OSError if the folder cannot be written.
    """
    check_folder(folder)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _acquire(path):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()  # while it is ours: once released, it may be that of another process
    finally:
        with contextlib.suppress(OSError):
            for each in missing:
                each.rmdir()


def _acquire(path: Path) -> TextIO:
    """The lock file, which is locked and says who we are."""
    with contextlib.ExitStack() as stack:
        with named_in_errors(f"cannot lock the folder {path.parent}"):
            file = stack.enter_context(path.open("a+", encoding="utf8"))
            try:
                _lock(file)
            except BlockingIOError:
                hint = "end that training first, or use another folder (--name)"
                raise ValueError(f"{path.parent} is in use: {_owner(file)[1]}; {hint}") from None
            if not _is_at(file, path):  # its last owner has deleted it
                return _acquire(path)
            host, owner = _owner(file)
            if host != socket.gethostname():
                raise ValueError(f"{path.parent} is in use: {owner}; if it has ended, delete {path}")
            file.truncate(0)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started}))
            file.flush()
        stack.pop_all()
        return file


def _owner(file: TextIO) -> tuple[str, str]:
    """What a lock file says -> the name of the computer, and a description. An unreadable file is of this computer."""
    file.seek(0)
    try:
        lock = json.loads(file.read(1000))
        return lock["host"], f"process {lock['pid']} on {lock['host']} has trained there since {lock['started']}"
    except (ValueError, TypeError, KeyError):
        return socket.gethostname(), "another process trains there"


def _is_at(file: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
