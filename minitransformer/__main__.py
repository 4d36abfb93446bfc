"""`python -m minitransformer ...` is the same as `minitransformer ...`."""

import sys

from minitransformer.cli import main

if __name__ == "__main__":
    sys.exit(main())
