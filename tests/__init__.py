"""The tests, which find `support` and `experiments` in the lessons' folder in whatever way they are started."""

import sys
from pathlib import Path

LESSONS = str(Path(__file__).parents[1] / "lessons")
if LESSONS not in sys.path:
    sys.path.insert(0, LESSONS)
