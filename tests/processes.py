"""Finding the processes that a test has started, by a mark in their environment: also those that left their session."""

import os
import signal
import time
import uuid

NAME = "STARTED_BY_A_TEST"
PROMPT = 10  # seconds that only a process that goes on working needs


def marked_environment():
    """This process's environment, with a mark of its own."""
    return {**os.environ, NAME: uuid.uuid4().hex}


def running(environment):
    """The processes with the mark of `environment` that still run; none but in Linux."""
    mark = f"{NAME}={environment[NAME]}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # empty for one that has ended
                if mark in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:  # it has just ended
            continue
    return found


def wait_until(condition):
    """Wait; an AssertionError if that takes too long."""
    end = time.monotonic() + PROMPT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def kill_all(environment):
    """End what is still running."""
    while pids := running(environment):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
