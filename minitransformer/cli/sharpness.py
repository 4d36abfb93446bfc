"""`minitransformer sharpness`: the largest eigenvalues of the Hessian of a trained model's loss."""

import argparse
from typing import Any

import numpy as np

from minitransformer.checks import check_integer, check_rate
from minitransformer.data import get_task, task_names
from minitransformer.data.prompted import prompted
from minitransformer.gradcheck.hessian import Eigenpairs, LossOfWeights, in_float64, largest_eigenpairs
from minitransformer.models import GPT, Seq2Seq, Transformer
from minitransformer.recipes import get_recipe
from minitransformer.recipes.saved import load_model
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.system.terminal import blamed_for_memory

DESCRIPTION = """\
Print the largest eigenvalues of the Hessian of a trained model's loss, and the smallest one. The Hessian has a second
derivative for each pair of weights, too many to write down. Its product with one vector costs one forward and one
backward pass, exact to rounding, and the eigenvalues are found from such products alone, by the method of Lanczos.

  minitransformer sharpness runs/reverse
  minitransformer sharpness runs/reverse --eigenvalues 10

The largest eigenvalue is called the sharpness: along its eigenvector the loss curves most. Where the loss is like a
quadratic, plain gradient descent converges along that eigenvector with learning rates below 2 / sharpness, and beyond
that every step goes farther away. (Adam divides each gradient by its own size, so this limit does not hold for Adam.) A
large gap after the first eigenvalues means that the loss curves along a few directions only. A negative eigenvalue
belongs to a direction in which the loss curves downwards: the weights are not at a minimum, and in that direction
gradient descent moves away with every learning rate, slowly if the eigenvalue is small.

The loss is that of training, with label smoothing but without dropout, on held-out data of a toy task. An eigenvalue
of the Hessian is no farther from each printed number than its residual, |Hx - lambda x|; it usually is much nearer.
"""
COUNT, BATCH = 3, 64
TOLERANCE = 1e-4  # of an eigenvector; the error of its eigenvalue is about the square of it
MAX_PRODUCTS = 150  # for each eigenvalue
LARGEST = 2_000_000  # weights: Lanczos keeps up to MAX_PRODUCTS vectors of so many float64 numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "run", metavar="RUN", help="folder of a run, such as runs/reverse, a checkpoint or a model file"
    )
    parser.add_argument(
        "--eigenvalues", type=int, default=COUNT, metavar="K", help=f"number of largest eigenvalues (default {COUNT})"
    )
    parser.add_argument(
        "--batch-size", type=int, default=BATCH, metavar="B", help=f"held-out sequences in the batch (default {BATCH})"
    )
    parser.add_argument(
        "--label-smoothing", type=float, metavar="X", help="label smoothing (default: as in training on this task)"
    )


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Find the eigenvalues, and print them."""
    check_integer("--eigenvalues", arguments.eigenvalues, least=1)
    check_integer("--batch-size", arguments.batch_size, least=1)
    loss, task = open_loss(arguments)
    theta = loss.weights
    value, gradient = loss.gradient(theta)
    with limit_threads(1), tqdm(unit="product", disable=None) as progress:

        def eigenpairs(sign: int, count: int) -> Eigenpairs:
            """The largest eigenvalues of sign * H."""

            def product(v: np.ndarray) -> np.ndarray:
                progress.update()
                return sign * loss.hessian_product(theta, v)

            return largest_eigenpairs(
                product, len(theta), count, seed=arguments.seed, tolerance=TOLERANCE, max_products=MAX_PRODUCTS
            )

        largest, negated = eigenpairs(1, arguments.eigenvalues), eigenpairs(-1, 1)
    result = {
        "task": task,
        "weights": len(theta),
        "sequences": arguments.batch_size,
        "label_smoothing": loss.loss_fn.label_smoothing,
        "loss": value,
        "gradient_norm": float(np.linalg.norm(gradient)),
        "eigenvalues": [*largest.values.tolist(), -float(negated.values[0])],  # the last one is the smallest
        "residuals": [*largest.residuals.tolist(), float(negated.residuals[0])],
        "products": largest.products + negated.products,
    }
    report(result)
    return 0, result


def open_loss(arguments: argparse.Namespace) -> tuple[LossOfWeights, str]:
    """The loss of the model on held-out data of its toy task, and the task's name. ValueError if it has none."""
    model, metadata = load_model(arguments.run, "reverse")
    name = metadata.get("task")
    if name not in task_names() or not isinstance(model, Transformer | GPT | Seq2Seq):
        raise ValueError(
            f"{arguments.run} is a {type(model).__name__} without a toy task, and the text that its loss is defined on "
            f"is not saved with it: sharpness draws new examples, of {', '.join(task_names())}"
        )
    count = model.num_parameters()
    if count > LARGEST:
        raise ValueError(f"{arguments.run} has {count:,} weights: sharpness takes models of up to {LARGEST:,}")
    if arguments.eigenvalues > count:
        raise ValueError(f"--eigenvalues must be at most {count:,}, the number of weights, got {arguments.eigenvalues}")
    smoothing = arguments.label_smoothing
    smoothing = get_recipe(name).defaults.label_smoothing if smoothing is None else smoothing
    with blamed_for_memory(f"--batch-size {arguments.batch_size:,}"):
        batch = get_task(name).held_out_batch(np.random.default_rng([arguments.seed, 3]), arguments.batch_size)
    read: Any = prompted(batch) if isinstance(model, GPT) else batch
    return LossOfWeights(in_float64(model), read, check_rate("--label-smoothing", smoothing)), name


def report(result: dict[str, Any]) -> None:
    """Print the eigenvalues, and what they mean."""
    *largest, smallest = result["eigenvalues"]
    print(f"{'task':<26} {result['task']}, {result['sequences']:,} held-out sequences")
    print(f"{'weights':<26} {result['weights']:,}")
    smoothing = f", label smoothing {result['label_smoothing']:g}" if result["label_smoothing"] else ""
    print(f"{'loss':<26} {result['loss']:.4f} nats per token{smoothing}")
    print(f"{'norm of the gradient':<26} {result['gradient_norm']:.3g}")
    names = [f"eigenvalue {i}" for i in range(1, len(largest) + 1)]
    for name, value, residual in zip([*names, "smallest eigenvalue"], result["eigenvalues"], result["residuals"],
                                     strict=True):  # fmt: skip
        print(f"{name:<26} {value:<12.6g} residual {residual:.0e}")
    print(f"{'Hessian-vector products':<26} {result['products']}\n")
    if largest[0] > 0:
        where = "along eigenvector 1" if smallest < 0 else "here"
        print(f"Plain gradient descent is stable {where} with learning rates below 2 / {largest[0]:.4g} = "
              f"{2 / largest[0]:.3g}.")  # fmt: skip
    if smallest < 0:
        print("The smallest eigenvalue is negative: the weights are not at a minimum of this loss. With no learning")
        print("rate is gradient descent stable along its eigenvector: each step multiplies the distance by "
              f"1 + {-smallest:.3g} lr.")  # fmt: skip
