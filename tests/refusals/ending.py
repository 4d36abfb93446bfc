"""How a case ends: with a right result, with a refusal in one line, or with a failure."""

import contextlib
import signal
import warnings

INPUT_ERRORS = (ValueError, TypeError, IndexError, OSError)
SUCCESS, REFUSED = "success", "refused"
LIMIT = 10.0  # seconds for a case


class WrongResultError(Exception):
    """A result that is not right, and that nobody would have noticed."""


class HangError(BaseException):
    """A case that does not end. No `except Exception` is to catch it."""


def demand(holds, what):
    """WrongResultError, saying what is wrong, unless it `holds`."""
    if not holds:
        raise WrongResultError(what)


@contextlib.contextmanager
def limited(seconds=LIMIT):
    """Inside a `with` block HangError comes after so many seconds."""

    def stop(number, frame):
        raise HangError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ending_of(target, rng, good):
    """Try one case -> "success", "refused", or the exception that it failed with."""
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            target(rng, good)
    except INPUT_ERRORS as refusal:
        if type(refusal).__module__ == "numpy.exceptions" or not str(refusal) or "\n" in str(refusal):
            return refusal
        return REFUSED
    except (Exception, HangError) as failure:
        return failure
    return SUCCESS
