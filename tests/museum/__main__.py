"""`python -m tests.museum`: search again for each bug that its test in caught_by.json no longer finds."""

import sys

from tests.museum.exhibits import EXHIBITS, PATIENTS
from tests.museum.search import repair

if __name__ == "__main__":
    sys.exit(1 if repair({exhibit.name: exhibit for exhibit in (*PATIENTS, *EXHIBITS)}.values()) else 0)
