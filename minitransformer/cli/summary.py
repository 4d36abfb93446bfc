"""`minitransformer summary`: the layers and parameters of a model."""

import argparse
import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from minitransformer.checks import check_integer
from minitransformer.cli import did_you_mean
from minitransformer.config import flat_fields
from minitransformer.data import get_task
from minitransformer.inspection import kept_activations, summarize, training_memory
from minitransformer.interop import is_huggingface_folder, outline_huggingface
from minitransformer.models import Transformer, TransformerConfig, config_names, named_config
from minitransformer.models.since_2017.bert import BERT, bert_config
from minitransformer.models.since_2017.gpt import GPT, gpt_config
from minitransformer.recipes import RECIPES
from minitransformer.recipes.folder import RunFolder
from minitransformer.recipes.options import LAYER_OPTIONS, TrainOptions, add_option, option_name
from minitransformer.recipes.saved import load_model, models_near
from minitransformer.system.terminal import blamed_for_memory, table_row, wrap

DESCRIPTION = """\
Print a table of a model's layers, with the shape of each output and the number
of parameters. B is the batch size, S the source length, T the target length,
V the vocabulary size, C = d_model and F = d_ff. With --activations, H is the
number of heads and D = C/H.

  minitransformer summary tiny                 what `train reverse` trains
  minitransformer summary base                 the paper's base model
  minitransformer summary gpt                  GPT-2 small; `bert` is BERT base
  minitransformer summary runs/reverse         a trained model, or one that Hugging Face has saved
  minitransformer summary base --activations   the arrays kept for backward
  minitransformer summary base --activations --attention tiled
  minitransformer summary base --activations --recompute
"""
PAPER_VOCAB_SIZE = 37000  # tokens, paper section 5.1
SIZES: dict[str, Any] = {"d_model": 768, "num_heads": 12, "d_ff": 3072, "num_layers": 12, "dropout": 0.1}
KINDS: dict[str, Callable[[], Any]] = {  # GPT-2 small and BERT base
    "gpt": lambda: GPT(gpt_config(50257, max_len=1024, **SIZES), seed=None),
    "bert": lambda: BERT(bert_config(30522, max_len=512, **SIZES), seed=None),
}
BLOCK = re.compile(r"(?P<block>.*\blayers\.[\d*]+)\.(?P<name>.*)")


def vocab_size_of(name: str) -> int:
    """The vocabulary size that the configuration `name` is trained with: the paper's, and for "tiny" that of letters.

    The toy tasks on letters (copy, reverse, sort) share one vocabulary. Addition, on digits, has a smaller one.
    """
    return len(get_task("reverse").vocabulary) if name == "tiny" else PAPER_VOCAB_SIZE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "config", metavar="MODEL", help=f"one of {', '.join((*config_names(), *KINDS))}, or a run or model file"
    )
    parser.add_argument(
        "--activations", action="store_true", help="show the arrays that a training step keeps in memory"
    )
    parser.add_argument(
        "--recompute", action="store_true", help="with --activations: as training with --recompute keeps them"
    )
    parser.add_argument("--options", action="store_true", help="also list the options that are as in the paper")
    group = parser.add_argument_group("advanced options")
    group.add_argument(
        "--vocab-size",
        type=int,
        metavar="V",
        help=f"vocabulary size (default {PAPER_VOCAB_SIZE}, as in the paper; for tiny {vocab_size_of('tiny')}, as in "
        "the toy tasks on letters)",
    )
    for field in dataclasses.fields(TrainOptions):
        if field.name in LAYER_OPTIONS:
            add_option(group, field, field.default)
    for name, default, letter in (("batch size", 32, "B"), ("source length", 64, "S"), ("target length", 64, "T")):
        help = f"{name} for --activations (default {default})"
        group.add_argument(option_name(name.replace(" ", "_")), type=int, default=default, metavar=letter, help=help)


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Print the table."""
    if arguments.vocab_size is not None:
        check_integer("--vocab-size", arguments.vocab_size, least=1)
    given = {name: value for name, value in vars(arguments).items() if name in LAYER_OPTIONS}
    if arguments.config not in config_names():
        return 0, show_model(*open_model(arguments, given))
    vocab_size = vocab_size_of(arguments.config) if arguments.vocab_size is None else arguments.vocab_size
    config = named_config(arguments.config, vocab_size, **TrainOptions(**given).layer_fields())
    if arguments.recompute and not arguments.activations:
        raise ValueError("--recompute needs --activations")
    if arguments.activations:
        sizes = {name: getattr(arguments, name) for name in ("batch_size", "source_length", "target_length")}
        for name, value in sizes.items():
            check_integer(option_name(name), value, least=1)
        return 0, show_activations(config, sizes, arguments.config, arguments.recompute)
    with blamed_for_memory(f"--vocab-size {vocab_size:,}"):
        model = Transformer(config, seed=None)
    head = (
        f"{arguments.config}: N = {config.num_layers} layers in each stack, d_model = {config.d_model}, "
        f"d_ff = {config.d_ff}, h = {config.num_heads} heads,\n"
        f"P_drop = {config.dropout}, {config.norm}-norm, {config.attention} attention, V = {config.vocab_size}"
    )
    return 0, show_model(model, head)


def open_model(arguments: argparse.Namespace, given: Iterable[str]) -> tuple[Any, str]:
    """Another model than the paper's, and the lines about its options. ValueError for an option that was `given`."""
    name = arguments.config
    for option in (*given, "vocab_size", "activations", "recompute"):
        if getattr(arguments, option):
            raise ValueError(f"{option_name(option)} is for {', '.join(config_names())}, and {name} is none of these")
    if name not in KINDS and not os.path.exists(name):
        known, runs = (*config_names(), *KINDS), ", ".join(models_near(Path(name)))
        places = f"the folder of a run{f' ({runs})' if runs else ''}, a model file, or one of {', '.join(known)}"
        raise ValueError(f"there is no model {name!r}{did_you_mean(name, known) or f': give {places}'}")
    facts: dict[str, Any] = {}
    model: Any = KINDS[name]() if name in KINDS else outline_huggingface(name) if is_huggingface_folder(name) else None
    if model is None:
        model, facts = load_model(name, "reverse")
    saved: dict[str, Any] = {key: facts[key] for key in ("task", "seed", "steps") if key in facts}
    data = RunFolder(Path(name)).read_config().get("data")
    if isinstance(data, dict):
        saved["text"] = data.get("text") or getattr(RECIPES.get(facts.get("task", "")), "own_text", None) or None
    saved |= getattr(model, "options", {})
    paper = isinstance(model.config, TransformerConfig)
    usual = flat_fields(TransformerConfig(model.config.vocab_size)) if paper else {}
    fields = flat_fields(model.config)
    others = {key: value for key, value in fields.items() if key == "vocab_size" or usual.get(key, ...) != value}
    head = [f"{name}: {type(model).__name__}, {listed(saved)}".removesuffix(", ")]
    head.append(f"{'unlike the base model of the paper' if paper else 'its options'}: {listed(others)}")
    if paper:
        as_usual = listed({key: value for key, value in fields.items() if key not in others})
        head.append(f"as in the paper: {as_usual if arguments.options else 'the rest, which --options lists'}")
    return model, "\n".join(wrap(line, "", "  ") for line in head)


def listed(options: dict[str, Any]) -> str:
    """The options that have a value, as in "norm=pre, num_heads=4"."""
    return ", ".join(f"{key}={value}" for key, value in options.items() if value is not None)


def show_model(model: Any, head: str) -> dict[str, Any]:
    """Print `head` and the table of layers -> the same for JSON."""
    rows = summarize(model)
    print(f"{head}\n")
    print(table_row("layer", f"{'kind':<21} {'output':<11} {'parameters':>13} ", 31).rstrip())
    shared = False
    for name, row in in_blocks(rows):
        if row is None:
            print(name)
            continue
        shared = shared or row.shared
        count = f"{row.parameters:,}{'*' * row.shared or ' '}"
        print(table_row(name, f"{row.kind:<21} {row.output:<11} {count:>14}", 31).rstrip())
    if shared:
        first = " or the first layer of the stack" if getattr(model.config, "share_layers", False) else ""
        tokens = next(row.name for row in rows if row.name.endswith("tokens"))
        print(f"* the matrix of {tokens}{first}, counted there")
    total = model.num_parameters()
    print(f"\n{total:,} parameters ({total / 1e6:.1f} million), {4 * total / 1e6:,.0f} MB in float32")
    return {"config": flat_fields(model.config), "parameters": total}


def in_blocks(rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """(name, row) of each row, and (block, None) before the rows of each layer of a stack.

    The names of those rows are indented and without the part that is their block's name.
    """
    current = None
    for row in rows:
        found = BLOCK.fullmatch(row.name)
        block = found["block"] if found else None
        if block is not None and block != current:
            yield block, None
        current = block
        yield (f"  {found['name']}" if found else row.name), row


def show_activations(config: TransformerConfig, sizes: dict[str, int], name: str, recompute: bool) -> dict[str, Any]:
    """Print a table of all arrays that are kept from the forward to the backward pass."""
    batch, source_length, target_length = sizes.values()
    rows = kept_activations(config, batch, source_length, target_length, recompute=recompute)
    lengths = dict(zip("BST", sizes.values(), strict=True), C=config.d_model, H=config.num_heads)
    lengths |= {"D": config.d_model // config.num_heads, "F": config.d_ff, "V": config.vocab_size}
    print(f"{name}: {', '.join(f'{letter} = {length}' for letter, length in lengths.items())}")
    named = list(in_blocks(rows))
    longest = max(44, *(len(name) for name, row in named if row is not None))
    print("\n" + table_row("kept for the backward pass", f"{'shape':<15} {'dtype':<7} {'MB':>7}   x", longest))
    for name, row in named:
        if row is None:
            print(name)
            continue
        shape = f"({', '.join(row.letters)})"
        rest = f"{shape:<15} {row.dtype:<7} {row.bytes / 1e6:>7.2f} {row.count:>3}"
        print(table_row(name, rest, longest))
    total = sum(row.bytes * row.count for row in rows)
    memory = training_memory(config, batch, (source_length, target_length), recompute=recompute)
    lines = (
        f"{total / 1e6:,.1f} MB of activation memory at the end of the forward pass, in float32",
        f"memory estimate with one thread: about {memory.total / 1e6:,.0f} MB at the peak, of which (MB)",
        f"  at all times: weights {memory.weights / 1e6:,.0f}, gradients {memory.gradients / 1e6:,.0f}, "
        f"Adam's moments {memory.moments / 1e6:,.0f}",
        f"  during a step: activations {memory.kept / 1e6:,.0f}, temporary arrays {memory.work / 1e6:,.0f}",
        f"  while a checkpoint is saved: copies {memory.saving / 1e6:,.0f}",
    )
    print("", *(wrap(line, "", "    ") for line in lines), sep="\n")
    return {**sizes, "bytes": total, "kept": [row._asdict() for row in rows]}
