"""`minitransformer train`: learn a toy task, test on held-out sequences, save the model and its figures."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np

from minitransformer.data import get_task, task_names
from minitransformer.decoding import decode_and_score
from minitransformer.models import EOS, Transformer, config_names, named_config
from minitransformer.process import limit_threads, threads_are_chosen
from minitransformer.training import RECIPES, TrainingSettings, save_checkpoint, train

HELP = "train a toy task and test it on held-out sequences"
DESCRIPTION = """\
Train an encoder-decoder on a toy task, decode sequences that it has never seen, and save the model
(RUNS/TASK.safetensors) and two figures (PLOTS/train_TASK_loss.png, PLOTS/train_TASK_attention.png).

  copy      abca -> abca       reverse   abca -> acba
  sort      abca -> aabc       addition  57+8 -> 65

  minitransformer train reverse
  minitransformer train sort --seed 3 --norm pre --steps 3000
"""
TESTED = 2000  # held-out sequences


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("task", metavar="TASK", help=f"one of {', '.join(task_names())}")
    parser.add_argument("--config", default="tiny", help=f"one of {', '.join(config_names())} (default tiny)")
    parser.add_argument("--norm", default="post", help='"post" as in the paper (default), or "pre"')
    parser.add_argument("--dropout", type=float, default=0.0, help="P_drop (default 0: the toy tasks never overfit)")
    parser.add_argument("--steps", type=int, help="training steps (default: the task's own)")
    parser.add_argument("--batch-size", type=int, default=64, help="pairs of sequences in a step (default 64)")
    parser.add_argument("--warmup", type=int, help="steps of rising learning rate (default: the task's own)")
    parser.add_argument("--factor", type=float, help="on the paper's learning rate (default: the task's own)")
    parser.add_argument("--threads", type=int, help="that share the work (default: OMP_NUM_THREADS, or 1 for tiny)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder for the model (default runs)")
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="folder for the figures (default plots)")


def run(arguments):
    """Train, test, save, report."""
    task = get_task(arguments.task)
    settings = make_settings(arguments)
    switches = {"norm": arguments.norm, "dropout": arguments.dropout}
    config = named_config(arguments.config, len(task.vocabulary), **switches)
    model = Transformer(config, seed=arguments.seed)
    for folder in (arguments.runs, arguments.plots):
        folder.mkdir(parents=True, exist_ok=True)  # before the minutes of training, not after
    print(f"{arguments.task}: {model.num_parameters():,} parameters, {settings.steps} steps", flush=True)
    with limit_threads(choose_threads(arguments)):
        history = train(model, task, settings)
        batch = task.held_out_batch(np.random.default_rng([arguments.seed, 3]), TESTED)
        decoded, score = decode_and_score(model, batch)
    result = {
        "task": arguments.task,
        "seed": arguments.seed,
        "exact_match": score,
        "held_out": TESTED,
        "steps": settings.steps,
        "seconds": history.seconds,
        "tokens_per_second": history.tokens / history.seconds,
    }
    checkpoint = arguments.runs / f"{arguments.task}.safetensors"
    save_checkpoint(checkpoint, model, **result)
    figures = draw(model, task, history, batch, arguments)
    print_result(task, batch, decoded, result)
    print("saved", *(str(path) for path in (checkpoint, *figures)))
    if arguments.json:
        print(json.dumps(result))
    return 0


def choose_threads(arguments):
    """As the command line says, then as the environment says; else one for the tiny model, and NumPy's own number.

    The tiny model's matrix products take a quarter of a millisecond. Shared by two threads, training took 0.8 times
    as long on an idle machine, and eight times as long on one where another process kept a processor busy.
    """
    if arguments.threads is not None and arguments.threads < 1:
        raise ValueError(f"--threads must be at least 1, got {arguments.threads}")
    if arguments.threads or threads_are_chosen():
        return arguments.threads
    return 1 if arguments.config == "tiny" else None


def make_settings(arguments):
    """The task's recipe, with what the command line says instead -> TrainingSettings."""
    recipe = dataclasses.asdict(RECIPES[arguments.task])
    changes = {name: getattr(arguments, name) for name in recipe if getattr(arguments, name) is not None}
    return TrainingSettings(**{**recipe, **changes}, batch_size=arguments.batch_size, seed=arguments.seed)


def draw(model, task, history, batch, arguments):
    """The loss and the attention figure -> their paths."""
    from minitransformer import plotting

    V, eps = model.config.vocab_size, model.config.label_smoothing
    right, others = 1.0 - eps + eps / V, eps / V  # the smoothed target's two probabilities
    floor = -right * math.log(right) - (V - 1) * others * math.log(others) if eps else 0.0
    name = arguments.task
    loss_path = arguments.plots / f"train_{name}_loss.png"
    plotting.plot_training(history, loss_path, f"Learning to {name}: the loss falls to its floor", floor)
    row = int((batch.source != 0).sum(axis=1).argmax())  # the longest example shows most
    source, target_in, target_out = (ids[row : row + 1, : _length(ids[row])] for ids in batch)
    _, cache = model.forward(source, target_in)
    weights = cache.decode.decoder.layers[-1].cross_attention.sublayer.attention.weights[0]  # (H, T, S)
    queries, keys = ([task.vocabulary[i].strip("<>") for i in ids[0]] for ids in (target_out, source))
    attention_path = arguments.plots / f"train_{name}_attention.png"
    title = f"Where each output token of “{name}” looks, last decoder layer"
    plotting.plot_attention(weights, queries, keys, attention_path, title)
    return loss_path, attention_path


def _length(ids):
    """The number of tokens before the padding."""
    return int((ids != 0).sum())


def print_result(task, batch, decoded, result):
    """The closing table."""
    percent = math.floor(1000 * result["exact_match"]) / 10  # rounded down: 100.0 % means every one
    print(f"\n{'exact match on held-out':<26} {percent:.1f} % of {result['held_out']:,} sequences")
    for source, answer, expected in list(zip(batch.source, decoded, batch.target_out, strict=True))[:3]:
        verdict = "right" if task.decode(answer) == task.decode(expected) and EOS in answer else "WRONG"
        print(f"{'for example':<26} {task.decode(source)} -> {task.decode(answer)}   {verdict}")
    print(f"{'steps':<26} {result['steps']:,}")
    print(f"{'seconds of training':<26} {result['seconds']:.1f}")
    print(f"{'tokens per second':<26} {result['tokens_per_second']:,.0f}")
