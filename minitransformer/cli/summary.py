"""`minitransformer summary`: what a model is made of."""

import dataclasses
import json

from minitransformer.models import Transformer, config_names, named_config
from minitransformer.models.summary import summarize

HELP = "show the layers, output shapes and parameters of a configuration"
DESCRIPTION = """\
A table of a model's layers with the shape of what each puts out and the number of parameters it learns. B is the
batch, S the source's length, T the target's, V the vocabulary, C = d_model, F = d_ff.

  minitransformer summary tiny                      the toy tasks' model
  minitransformer summary base --vocab-size 37000   the paper's base model: 63.1 million parameters
"""


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("config", metavar="CONFIG", help=f"one of {', '.join(config_names())}")
    parser.add_argument("--vocab-size", type=int, default=37000, help="V, shared (default 37000, the paper's)")


def run(arguments):
    """Print the table."""
    config = named_config(arguments.config, arguments.vocab_size)
    model = Transformer(config, seed=None)
    rows = summarize(model)
    print(
        f"{arguments.config}: N = {config.num_layers} layers in each stack, d_model = {config.d_model}, "
        f"d_ff = {config.d_ff}, h = {config.num_heads} heads, P_drop = {config.dropout}, "
        f"eps_ls = {config.label_smoothing}, {config.norm}-norm, V = {config.vocab_size}\n"
    )
    print(f"{'layer':<44} {'kind':<18} {'output':<12} {'parameters':>12}")
    for row in rows:
        print(f"{row.name:<44} {row.kind:<18} {row.output:<12} {row.parameters:>12,}{row.note}")
    total = model.num_parameters()
    print(f"\n{total:,} parameters ({total / 1e6:.1f} million), {4 * total / 1e6:,.0f} MB in float32")
    if arguments.json:
        print(json.dumps({"config": dataclasses.asdict(config), "parameters": total}))
    return 0
