"""A lesson that is interrupted ends with one line instead of a traceback. This file imports nothing that is slow."""

import os
import signal
import sys
from types import TracebackType

from minitransformer.system.signals import Interruptions, end_process
from minitransformer.system.terminal import discard_output, error_message, is_closed_pipe


def end_script_in_one_line(name: str) -> None:
    """From here on, an interruption, too little memory and a closed pipe end this script without a traceback.

    The one line on stderr begins with `name`. There is none if the script is the child of `run_child`, whose process
    has a line of its own.
    """

    interruptions = Interruptions().__enter__()

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if interruptions.received:
            if not _leaves_ctrl_c_to_parent():
                print(f"{name}: stopped", file=sys.stderr)
            end_process(interruptions.received)
        elif is_closed_pipe(error):
            discard_output()
            os._exit(141)
        elif issubclass(kind, MemoryError):
            print(f"{name}: {error_message(error)}", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, traceback)

    sys.excepthook = end


def _leaves_ctrl_c_to_parent() -> bool:
    return hasattr(signal, "pthread_sigmask") and signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
