"""Let PyTorch solve the reference cases in float64, and store problems and solutions beside this file.

Run by hand, from the root of the repository, when a case is added or changed:

    pip install -e '.[oracle]'
    python -m tests.reference.make_reference
"""

import numpy as np
import torch

from minitransformer.gradcheck.subjects import SUBJECTS
from tests.oracle.cases import CONVERTED, REFERENCE_CASES, REFERENCE_SIZES
from tests.oracle.problems import draw, solve_theirs
from tests.oracle.reference_file import PATH, shorten, write
from tests.oracle.theirs import configuration
from tests.oracle.torch_modules import transformer_weights
from tests.oracle.training import draw_start, train_theirs


def solved_case(name, numbers):
    """One case as nested dicts."""
    solution = solve_theirs(name, REFERENCE_SIZES, numbers)
    return {"problem": shorten(numbers._asdict()), "solution": solution._asdict()}


def solved_training(start):
    """Ten steps of training as nested dicts."""
    return {"start": shorten(start._asdict()), "run": train_theirs(start)._asdict()}


def transformer_state(name, weights):
    """Our weights as a torch.nn.Transformer has them, to compare with what `to_pytorch` makes of them."""
    tensors = {name: torch.tensor(weight) for name, weight in weights.items()}
    state = transformer_weights(torch, configuration(REFERENCE_SIZES, SUBJECTS[name].switches), tensors)
    return shorten({name: tensor.numpy() for name, tensor in state.items()})


def main():
    """Solve, store, and say what was stored."""
    problems = {name: draw(name, REFERENCE_SIZES, seed) for seed, name in enumerate(REFERENCE_CASES, 1)}
    tree = {name: solved_case(name, numbers) for name, numbers in problems.items()}
    tree["training"] = solved_training(draw_start(seed=100))
    tree["state_dict"] = transformer_state(CONVERTED, problems[CONVERTED].weights)
    write(tree, made_with=f"torch {torch.__version__}, numpy {np.__version__}")
    print(f"solved by PyTorch {torch.__version__}:", *tree, sep="\n    ")
    print(f"{PATH.name}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
