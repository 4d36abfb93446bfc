"""Ending on Ctrl-C, SIGTERM and SIGHUP: promptly, with all child processes, and with one line instead of a traceback.

Ctrl-C raises KeyboardInterrupt in the main thread. SIGTERM would end the process where it stands, and leave its
children running, and so would SIGHUP, which a terminal sends when it is closed. Here both raise the same exception,
unless they are ignored, as SIGHUP is after `nohup`.

A terminal sends Ctrl-C to a command and to its children. The children leave it to the command, which ends them.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

STOPPING = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]  # not on Windows
REPEAT = 1.0  # seconds after which an interruption that had no effect is repeated


class Interruptions:
    """Inside a `with` block Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, until the block ends.

    An exception that a signal raises can be lost: Python drops it in a callback, and some libraries drop every
    exception while they are imported. So it is raised again every second. Signals that the program ignores or handles
    itself are left alone. Only the main thread receives signals: in others nothing changes.

    `received` is the number of the signal that raised an exception, or None. Code that is interrupted may turn the
    exception into one of its own, such as an ImportError.
    """

    def __init__(self) -> None:
        self.replaced: dict[int, Any] = {}
        self.received: int | None = None

    def __enter__(self) -> "Interruptions":
        if threading.current_thread() is threading.main_thread():
            self._replace(signal.SIGINT, signal.default_int_handler, self.interrupt)
            for number in STOPPING:
                self._replace(number, signal.SIG_DFL, self.interrupt)
            if hasattr(signal, "setitimer"):  # not on Windows
                self._replace(signal.SIGALRM, signal.SIG_DFL, self.repeat)
        return self

    def __exit__(self, *exception: object) -> None:
        self._set_timer(0)
        for number, handler in self.replaced.items():
            signal.signal(number, handler)

    def interrupt(self, number: int, frame: FrameType | None) -> NoReturn:
        """Raise the exception, and again after a while."""
        self.received = number
        self._set_timer(REPEAT)
        raise KeyboardInterrupt

    def repeat(self, number: int, frame: FrameType | None) -> None:
        """Handle the last signal again, with the handler that it has now."""
        lost, self.received = self.received, None
        if lost:
            signal.raise_signal(lost)

    def _replace(self, number: int, default: Any, handler: Any) -> None:
        if signal.getsignal(number) == default:
            self.replaced[number] = signal.signal(number, handler)

    def _set_timer(self, seconds: float) -> None:
        if hasattr(signal, "setitimer") and signal.SIGALRM in self.replaced:
            signal.setitimer(signal.ITIMER_REAL, seconds)


class Postponed:
    """Inside a `with` block, Ctrl-C, SIGTERM and SIGHUP wait until `deliver` is called, or the block ends.

    Then the handler is called that they had before the block, such as the one that raises KeyboardInterrupt. After
    Ctrl-C or SIGTERM, a second signal is handled at once. A signal that is ignored stays ignored. One without a handler
    in Python, such as SIGTERM by default, ends the process as usual, unless the caller wants `to_take` it. Only the
    main thread receives signals: in others this does nothing.
    """

    def __init__(self, to_take: bool = False) -> None:
        self.untouched = (signal.SIG_IGN, None) if to_take else (signal.SIG_IGN, None, signal.SIG_DFL)
        self.handlers: dict[int, Any] = {}  # before the block
        self.received: int | None = None

    def __enter__(self) -> "Postponed":
        with contextlib.suppress(ValueError):  # not in the main thread
            for number in (signal.SIGINT, *STOPPING):
                if signal.getsignal(number) not in self.untouched:
                    self.handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._restore()
        if kind is None:  # else the block ends early anyway, perhaps because of this signal
            self._handle()

    def deliver(self) -> None:
        """Handle the signal that was received, if there is one."""
        if self.received is not None:
            self._handle()
            self.__enter__()  # its handler has not raised an exception, so the next signal waits again

    def take(self) -> bool:
        """Whether a signal was received, which is then not delivered."""
        received, self.received = self.received, None
        return received is not None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if number in (signal.SIGINT, signal.SIGTERM):  # not SIGHUP: a closed terminal sends it twice
            self._restore()

    def _restore(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _handle(self) -> None:
        number, self.received = self.received, None
        if number is not None:
            signal.raise_signal(number)


def end_process(number: int) -> None:
    """End by the signal `number`, without waiting for threads and for the end of other libraries.

    A shell that runs several commands then stops, too. It would go on after one that only reports status 130.
    """
    with contextlib.suppress(OSError, AttributeError):  # a closed pipe, or no output at all
        sys.stdout.flush()
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
