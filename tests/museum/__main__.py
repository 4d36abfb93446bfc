"""`python -m tests.museum [--all]`: repair, or make again, the table of which check finds which bug (see search.py)."""

import sys

from tests.museum.exhibits import EXHIBITS
from tests.museum.search import repair

if __name__ == "__main__":
    sys.exit(1 if repair(EXHIBITS, search_all="--all" in sys.argv[1:]) else 0)
