"""`minitransformer summary`: the layers and parameters of a model."""

import argparse
import dataclasses
import json

from minitransformer.inspection.activation_memory import kept_activations
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.inspection.summary import summarize
from minitransformer.models import Transformer, TransformerConfig, config_names, named_config

DESCRIPTION = """\
Print a table of a model's layers, with the shape of each output and the number of parameters. B is the batch size, S
the source length, T the target length, V the vocabulary size, C = d_model and F = d_ff.

  minitransformer summary tiny                      the model of the toy tasks, with the paper's vocabulary size
  minitransformer summary base --vocab-size 37000   the paper's base model: 63.1 million parameters
  minitransformer summary base --activations        the arrays that are kept for the backward pass
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("config", metavar="CONFIG", help=f"one of {', '.join(config_names())}")
    parser.add_argument(
        "--vocab-size", type=int, default=37000, metavar="V", help="vocabulary size (default 37000, as in the paper)"
    )
    parser.add_argument(
        "--activations", action="store_true", help="show the arrays that a training step keeps in memory"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="B", help="batch size for --activations (default 32)"
    )
    parser.add_argument(
        "--source-length", type=int, default=64, metavar="S", help="source length for --activations (default 64)"
    )
    parser.add_argument(
        "--target-length", type=int, default=64, metavar="T", help="target length for --activations (default 64)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    config = named_config(arguments.config, arguments.vocab_size)
    if arguments.activations:
        return show_activations(config, arguments)
    model = Transformer(config, seed=None)
    rows = summarize(model)
    print(
        f"{arguments.config}: N = {config.num_layers} layers in each stack, d_model = {config.d_model}, "
        f"d_ff = {config.d_ff}, h = {config.num_heads} heads, P_drop = {config.dropout}, "
        f"{config.norm}-norm, V = {config.vocab_size}\n"
    )
    print(f"{'layer':<44} {'kind':<18} {'output':<12} {'parameters':>12}")
    for row in rows:
        print(f"{row.name:<44} {row.kind:<18} {row.output:<12} {row.parameters:>12,}{row.note}")
    total = model.num_parameters()
    print(f"\n{total:,} parameters ({total / 1e6:.1f} million), {4 * total / 1e6:,.0f} MB in float32")
    if arguments.json:
        print(json.dumps({"config": dataclasses.asdict(config), "parameters": total}))
    return 0


def show_activations(config: TransformerConfig, arguments: argparse.Namespace) -> int:
    """Print a table of all arrays that are kept from the forward to the backward pass."""
    sizes = {name: getattr(arguments, name) for name in ("batch_size", "source_length", "target_length")}
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    rows = kept_activations(config, *sizes.values())
    print(f"{'kept for the backward pass':<74} {'shape':<18} {'numbers':<20} {'dtype':<8} {'MB':>8}  layers")
    for row in rows:
        letters, shape = (f"({', '.join(map(str, numbers))})" for numbers in (row.letters, row.shape))
        print(f"{row.name:<74} {letters:<18} {shape:<20} {row.dtype:<8} {row.bytes / 1e6:>8.2f}  x {row.count}")
    total = sum(row.bytes * row.count for row in rows)
    print(f"\n{total / 1e6:,.1f} MB of activation memory at the end of the forward pass, in float32")
    memory = training_memory(config, arguments.batch_size, (arguments.source_length, arguments.target_length))
    print(
        f"memory estimate with one thread: about {memory.total / 1e6:,.0f} MB at the peak, of which (MB)\n"
        f"  at all times: weights {memory.weights / 1e6:,.0f}, gradients {memory.gradients / 1e6:,.0f}, "
        f"Adam's moments {memory.moments / 1e6:,.0f}\n"
        f"  during a step: activations {memory.kept / 1e6:,.0f}, temporary arrays of a layer {memory.work / 1e6:,.0f}\n"
        f"  while a checkpoint is saved: copies {memory.saving / 1e6:,.0f}"
    )
    if arguments.json:
        print(json.dumps({**sizes, "bytes": total, "kept": [row._asdict() for row in rows]}))
    return 0
