"""Progress: tqdm's bar on a terminal, and a line now and then in a pipe or a log file.

The package needs tqdm, but measurements also run on machines that have NumPy and little else. They get the lines.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any

LINE_INTERVAL = 5.0  # seconds between two lines, or a tenth of the time so far if that is longer


def _real_tqdm() -> Any:
    """tqdm's class if stderr is a terminal and tqdm is installed, else None."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


class tqdm:
    """What the package uses of tqdm. On a terminal, `tqdm(...)` returns one of tqdm's bars.

    Elsewhere it returns an object of this class. Now and then that prints a line on stderr, such as
    "step 350 of 700, 00:24, 00:24 left, loss 0.31".
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        real = _real_tqdm()
        return real(*arguments, **options) if real else super().__new__(cls)

    def __init__(
        self,
        iterable: Iterable = (),
        total: float | None = None,
        initial: float = 0,
        unit: str = "step",
        desc: str = "",
        disable: bool | None = None,
        **options: Any,
    ) -> None:
        self.iterable, self.n, self.initial, self.disable = iterable, initial, initial, disable
        self.total = len(iterable) if total is None and isinstance(iterable, Sized) else total
        self.name, self.postfix = f"{desc}: {unit}" if desc else unit, ""
        self.start = self.last = time.monotonic()

    def __iter__(self) -> Iterator:
        for item in self.iterable:
            yield item
            self.update()

    def __enter__(self) -> "tqdm":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def update(self, n: float = 1) -> None:
        """Advance by `n` steps."""
        self.n += n
        self.refresh()

    def set_postfix_str(self, text: str) -> None:
        """Show `text` at the end of the next line."""
        self.postfix = text

    def refresh(self) -> None:
        """Print a line if the last one is long ago."""
        now = time.monotonic()
        if not self.disable and now - self.last >= max(LINE_INTERVAL, 0.1 * (now - self.start)):
            self.last = now
            print(self.line(now - self.start), file=sys.stderr, flush=True)

    def line(self, seconds: float) -> str:
        """The line to print `seconds` after the start."""
        parts = [f"{self.name} {self.n:,.0f}", _clock(seconds)]
        if self.total:
            parts[0] += f" of {self.total:,.0f}"
            done = self.n - self.initial
            if done:
                parts.append(f"{_clock(seconds * (self.total - self.n) / done)} left")
        return ", ".join([*parts, self.postfix] if self.postfix else parts)

    def close(self) -> None:
        """End the bar; a line in a log file needs no end."""

    @staticmethod
    def write(text: str) -> None:
        """Print a line above the bar."""
        real = _real_tqdm()
        if real:
            real.write(text)
        else:
            print(text, flush=True)


def _clock(seconds: float) -> str:
    """1:02:03, or 02:03 within the first hour."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


__all__ = ["tqdm"]
