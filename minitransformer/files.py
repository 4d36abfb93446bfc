"""Writing files so that nothing half-written is ever found under their name."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def written_whole(path):
    """A path to write to in a `with` block, which becomes `path` if the block ends well and vanishes if it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
