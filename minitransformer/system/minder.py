"""Runs a program, and ends every process that the program leaves behind. `run_child` starts it as a script:

    python minder.py LIFELINE PATIENCE LIMITS COMMAND ...

LIFELINE is the reading end of a pipe. When its writer says something or is gone, the program has PATIENCE seconds to
end. LIMITS is JSON, {"RLIMIT_AS": bytes}, and holds for the program and all its processes.

The program gets a session of its own, which is ended as a whole. Linux also hands the minder the processes that have
left it: daemons. Elsewhere they live on. So do, everywhere, those of a program that kills its minder on purpose.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # from Linux's sys/prctl.h


def main(lifeline: str, patience: str, limits: str, *command: str) -> NoReturn:
    """Run the command, end what is left, and end in the same way: with its exit status, or by its signal."""
    for name, value in json.loads(limits).items():
        limit(getattr(resource, name), value)
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *_: None)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    child = subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # there is no other thread yet
    )
    threading.Thread(target=follow, args=(int(lifeline), float(patience), child), daemon=True).start()
    status = child.wait()
    end_all(child.pid)
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
        os.kill(os.getpid(), -status)
    os._exit(status % 256)


def limit(kind: int, value: int) -> None:
    """Lower a limit to `value`, where the system has it and it is not lower already."""
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft > value:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value if hard == resource.RLIM_INFINITY else min(value, hard)))


def follow(lifeline: int, patience: float, child: subprocess.Popen) -> None:
    """End the child when the lifeline says so."""
    os.read(lifeline, 1)
    child.terminate()
    time.sleep(patience)
    child.kill()


def end_all(group: int) -> None:
    """End the processes of a group, and all that have become children of this process, also while they fork."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    while True:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children,
        ):
            for pid in children.read().split():
                os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
