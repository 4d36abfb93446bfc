"""Let PEFT's adapters solve their cases in float64, and store problems and solutions beside this file.

Run by hand, from the root of the repository, when a case is added or changed:

    pip install -e '.[oracle]' peft
    python -m tests.reference.make_peft
"""

import peft

from tests.oracle.peft_cases import PATH, TARGETS
from tests.oracle.peft_modules import solve
from tests.oracle.reference_file import shorten, write


def main():
    """Solve, store, and say what was stored."""
    tree = {}
    for seed, name in enumerate(TARGETS, 1):
        _, problem, solution = solve(name, seed)
        tree[name] = {"problem": shorten(problem._asdict()), "solution": solution._asdict()}
    write(tree, f"peft {peft.__version__}", PATH)
    print(f"{PATH.name}: {PATH.stat().st_size:,} bytes, solved by peft {peft.__version__}")


if __name__ == "__main__":
    main()
