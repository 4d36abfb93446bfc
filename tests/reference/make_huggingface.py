"""Let Hugging Face's models solve their cases in float64, and store problems and solutions beside this file.

Run by hand, from the root of the repository, when a case is added or changed:

    pip install -e '.[oracle]' transformers
    python -m tests.reference.make_huggingface
"""

import torch
import transformers

from tests.oracle.huggingface_cases import CASES, PATH
from tests.oracle.huggingface_modules import solve
from tests.oracle.reference_file import shorten, write


def main():
    """Solve, store, and say what was stored."""
    tree = {}
    for seed, (name, case) in enumerate(CASES.items(), 1):
        _, problem, solution = solve(case, seed)
        tree[name] = {"problem": shorten(problem._asdict()), "solution": solution._asdict()}
    write(tree, f"transformers {transformers.__version__}, torch {torch.__version__}", PATH)
    print(f"solved by transformers {transformers.__version__}:", *tree, sep="\n    ")
    print(f"{PATH.name}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
