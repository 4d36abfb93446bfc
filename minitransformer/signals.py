"""Ending on Ctrl-C and SIGTERM: promptly, with all child processes, and with one line instead of a traceback.

Ctrl-C raises KeyboardInterrupt in the main thread. SIGTERM would end the process where it stands, and leave its
children running. Here it raises a KeyboardInterrupt, too, so that one way of ending is enough.

A terminal sends Ctrl-C to a command and to its children. The children leave it to the command, which ends them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, NoReturn

from minitransformer.terminal import discard_output, error_message

PATIENCE = 0.5  # seconds that a child has to clean up


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


def number_of(interruption: BaseException) -> int:
    """The number of the signal that raised `interruption`. A shell reports 128 more than that as the exit status."""
    return signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT


@contextlib.contextmanager
def raising_terminated() -> Iterator[None]:
    """Inside a `with` block SIGTERM raises Terminated, unless the program ignores SIGTERM or has its own handler."""
    replaced = _handle_sigterm()
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _handle_sigterm() -> bool:
    """Let SIGTERM raise Terminated, if it would otherwise end the process -> whether it does."""
    is_main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_terminated)
        return True
    return False


def _raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    raise Terminated


def end_process(interruption: BaseException) -> None:
    """End by the signal that raised `interruption`, without waiting for threads and for the end of other libraries.

    A shell that runs several commands then stops, too. It would go on after one that only reports status 130.
    """
    with contextlib.suppress(OSError, AttributeError):  # a closed pipe, or no output at all
        sys.stdout.flush()
    number = number_of(interruption)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


@contextlib.contextmanager
def blocked(*numbers: int) -> Iterator[None]:
    """Processes that are started inside a `with` block never receive these signals. This one receives them at its end.

    On Windows nothing changes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_child(command: Sequence[str], **options: Any) -> int:
    """Run a program -> its exit status. If this process is interrupted, the child ends before it does."""
    child = None
    try:
        with blocked(signal.SIGINT):
            child = subprocess.Popen(command, **options)
        return child.wait()
    except KeyboardInterrupt:
        if child:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(PATIENCE)
        raise
    finally:
        if child:
            child.kill()  # does nothing if it has ended
            child.wait()


def end_script_in_one_line(name: str) -> None:
    """From here on, an interruption, too little memory and a closed pipe end this script without a traceback.

    The one line on stderr begins with `name`. There is none if the script is the child of `run_child`, whose process
    has a line of its own.
    """

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            if not _leaves_ctrl_c_to_parent():
                print(f"{name}: stopped", file=sys.stderr)
            end_process(error)
        elif issubclass(kind, BrokenPipeError):
            discard_output()
            os._exit(141)
        elif issubclass(kind, MemoryError):
            print(f"{name}: {error_message(error)}", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, traceback)

    sys.excepthook = end
    _handle_sigterm()


def _leaves_ctrl_c_to_parent() -> bool:
    return hasattr(signal, "pthread_sigmask") and signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
