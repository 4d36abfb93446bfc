"""Progress bars: tqdm's, or a stand-in that draws nothing where tqdm is not installed.

The package needs tqdm, but measurements also run on machines that have NumPy and little else.
"""

from collections.abc import Iterable, Iterator
from typing import Any

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """The part of tqdm that the package uses, without a bar."""

        def __init__(self, iterable: Iterable = (), total: float | None = None, **options: Any):
            self.iterable, self.total, self.n = iterable, total, 0.0

        def __iter__(self) -> Iterator:
            return iter(self.iterable)

        def __enter__(self) -> "tqdm":
            return self

        def __exit__(self, *exception: object) -> None:
            pass

        def update(self, n: float = 1) -> None:
            """Advance by `n` steps."""
            self.n += n

        def set_postfix_str(self, text: str) -> None:
            """Show `text` after the bar."""

        def refresh(self) -> None:
            """Draw the bar."""

        @staticmethod
        def write(text: str) -> None:
            """Print a line above the bar."""
            print(text, flush=True)


__all__ = ["tqdm"]
