"""Trying the checks on each mutant, in a process of its own, until one alarms."""

import collections
import contextlib
import gc
import json
import os
import select
import signal
import time
from typing import NamedTuple

from tests.mutation import measuring
from tests.mutation.measuring import GRADIENT_CHECKS, all_groups, caches, checks_of, silence
from tests.mutation.mutants import Mutant

KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
SOUND = "killed by a check that passes in the same process without the change"
PATIENCE = 20  # a check may take so many times its usual time, and two seconds


class Verdict(NamedTuple):
    """How it went with a mutant."""

    outcome: str
    by: str = ""  # the check that alarmed, or was too slow
    tried: int = 0  # checks
    fitting: int = 0  # checks that run the line

    @property
    def killed(self):
        return self.outcome == KILLED


class Attempt(NamedTuple):
    """A mutant that is being judged by another process."""

    mutant: Mutant
    order: list
    pid: int
    pipe: int
    end: int  # a descriptor that can be read when the process has ended
    deadline: float


class Judge:
    """Tries the mutants, and learns which check kills those of which function.

    `effort` is the number of seconds for the checks of a survivor; those of the module's own file of tests run in any
    case. `limit` is the largest number of seconds for one check.
    """

    def __init__(self, measured, effort=20.0, limit=20.0, workers=1):
        self.measured = measured
        self.effort, self.limit, self.workers = effort, limit, workers
        self.killers = collections.defaultdict(collections.Counter)  # of a function
        self.sound = {}  # {(function, check): whether it passes when the function is planted unchanged}

    def judge(self, mutants):
        """(mutant, Verdict) of each, in the order in which they are known."""
        waiting, running = collections.deque(mutants), []
        caches()  # found once for all processes
        gc.collect()
        gc.freeze()  # the processes share the memory of this one; looking for garbage there would copy it
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    running.append(self._start(waiting.popleft()))
                ended = self._wait(running)
                running = [attempt for attempt in running if attempt not in ended]
                for attempt in ended:
                    verdict = self._verdict(attempt)
                    if verdict is None:  # by a check that alarms without a bug: try again without it
                        waiting.appendleft(attempt.mutant)
                    else:
                        yield attempt.mutant, verdict
        finally:
            gc.unfreeze()
            for attempt in running:
                os.kill(attempt.pid, signal.SIGKILL)
                os.waitpid(attempt.pid, 0)

    def order(self, mutant):
        """The checks that run the line of the mutant: those that are known to kill its siblings, then the cheap."""
        name = mutant.key.function
        level, file = name.split(".")[0], own_file(name)
        fitting = [check for check in self.measured if check.runs(mutant) and self.sound.get((name, check.name), True)]
        rank, cost = collections.Counter(), {}
        for check in sorted(fitting, key=lambda check: check.seconds):
            # different tests before more cases of the same one; those of the module itself, and its gradients, first
            test = check.name.partition("[")[0] if not check.group.startswith(GRADIENT_CHECKS) else check.name
            likely = check.group == file or check.group == GRADIENT_CHECKS + level
            rank[test] += 1
            cost[check.name] = (check.seconds + 0.001) * rank[test] * (0.1 if likely else 1.0)
        killers = self.killers[name]
        return sorted(fitting, key=lambda check: (-killers[check.name], cost[check.name]))

    def _start(self, mutant):
        order = self.order(mutant)
        pipe, pid = fork(lambda write: self._try(mutant, order, write))
        own = sum(check.seconds for check in order if check.group == own_file(mutant.key.function))
        return Attempt(
            mutant, order, pid, pipe, os.pidfd_open(pid), time.monotonic() + 4 * (self.effort + own + self.limit) + 10
        )

    def _try(self, mutant, order, write):
        """In the process of the mutant: say the number of each check before it runs, and how it ends."""
        file, started = own_file(mutant.key.function), time.process_time()
        with mutant.planted():
            for number, check in enumerate(order):
                if time.process_time() - started > self.effort and check.group != file:
                    continue
                write(number)
                self._limit(check.seconds)
                if alarms(check):
                    break
            else:
                write(SURVIVED)
                return
        self._limit(check.seconds)
        with unchanged(mutant).planted():
            write(SOUND if not alarms(check) else KILLED)

    def _limit(self, seconds):
        """End this process after some time of the processor, also in an endless loop."""
        signal.setitimer(signal.ITIMER_PROF, min(self.limit, 2 + PATIENCE * seconds))

    def _wait(self, running):
        """The attempts that have ended; those that wait for something that never comes are ended here."""
        ended = select.select([attempt.end for attempt in running], [], [], 1.0)[0]
        for attempt in running:
            if time.monotonic() > attempt.deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(attempt.pid, signal.SIGPROF)
        return [attempt for attempt in running if attempt.end in ended]

    def _verdict(self, attempt):
        os.close(attempt.end)
        said, status = hear(attempt.pipe, attempt.pid)
        numbers = [word for word in said if isinstance(word, int)]
        by = attempt.order[numbers[-1]] if numbers else None
        counts = len(numbers), len(attempt.order)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            return Verdict(TIMED_OUT, by.name if by else "", *counts)
        if said and said[-1] == SURVIVED:
            return Verdict(SURVIVED, "", *counts)
        if by is None:
            raise RuntimeError(f"could not be planted: {attempt.mutant.key}")
        if said[-1] != SOUND and not self._is_sound(attempt.mutant, by):  # or the whole process has crashed
            return None
        self.killers[attempt.mutant.key.function][by.name] += 1
        return Verdict(KILLED, by.name, *counts)

    def _is_sound(self, mutant, check):
        """Whether the check passes when the function is planted, but without a change."""
        pair = mutant.key.function, check.name
        if pair not in self.sound:
            pipe, pid = fork(lambda write: self._try(unchanged(mutant), [check], write))
            self.sound[pair] = hear(pipe, pid)[0][-1:] == [SURVIVED]
        return self.sound[pair]


def unchanged(mutant):
    """The mutant without its change."""
    value = getattr(mutant.parent, mutant.field)
    return mutant._replace(new=value if mutant.index is None else value[mutant.index])


def own_file(function):
    """The file of tests of a function: tests.layers.test_linear for layers.linear.Linear.forward."""
    parts = function.split(".")
    for length in range(len(parts) - 1, 1, -1):  # the longest name that is one of a file: functional.since_2017.rotary
        for name in (
            f"tests.{parts[0]}.test_{parts[length - 1]}",
            f"tests.{parts[0]}.test_{parts[length - 1]}_attention",
        ):
            if name in all_groups():
                return name
    return f"tests.test_{parts[0]}"


def alarms(check):
    """Whether a check alarms."""
    return measuring.alarms(checks_of(check.group)[check.name])


def fork(work):
    """Run `work(write)` in a copy of this process -> (pipe, pid); `write` sends one line of JSON."""
    pipe, other_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(pipe)
        status = 1
        try:
            silence()
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work(lambda word: os.write(other_end, json.dumps(word).encode() + b"\n"))
            status = 0
        finally:
            os._exit(status)
    os.close(other_end)
    return pipe, pid


def hear(pipe, pid):
    """Wait for the end of the process -> all that it has said, and its status."""
    status = os.waitpid(pid, 0)[1]
    os.set_blocking(pipe, False)  # processes that it has started may still hold the other end
    with os.fdopen(pipe, "rb") as file:
        return [json.loads(line) for line in (file.read() or b"").splitlines()], status
