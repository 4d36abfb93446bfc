"""`minitransformer explore`: every number of a small model, forward and backward, in the browser."""

import argparse
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

from minitransformer.cli.embed import open_bert
from minitransformer.example.model import WORD
from minitransformer.explorer import (
    attention,
    attention_data,
    check_model,
    example_data,
    model_data,
    sentences_data,
    serve,
    write_page,
    writing_of,
)
from minitransformer.explorer.export import LARGEST, LONGEST, Data
from minitransformer.explorer.folder import check_new
from minitransformer.explorer.pair import check_same, pair_data, pair_names
from minitransformer.interop import is_huggingface_folder
from minitransformer.models import BERT
from minitransformer.recipes.saved import check_known, load_model
from minitransformer.system.files import kind_of
from minitransformer.system.terminal import json_line

INSTALLED = "minilm"  # instead of RUN: the BERT that a package brings
TWO = 'give it two sentences, each in quotes, as in `minitransformer explore RUN "One sentence." "Another one."`'
DESCRIPTION = f"""\
Open a page in the browser that shows every number of a small Transformer, forward and backward, and where it comes
from. Without RUN, it is the running example of the lessons, which turns "stop" into "pots". With RUN, it is a model of
your own, such as one that `minitransformer train reverse` has saved:

  minitransformer explore
  minitransformer explore --word top
  minitransformer explore runs/reverse --word hello
  minitransformer explore runs/reverse-gpt --word hello
  minitransformer explore runs/addition --word 12+34 --answer 47
  minitransformer explore runs/reverse runs/reverse-2

The loss compares what the model predicts with the answer. Without --answer, that is the right answer of the task, or
what the model writes if the task has none. The page shows Transformers and GPTs with at most {LARGEST:,} weights, and
words of at most {LONGEST} tokens. They may have several layers, pre-norm, and learned, rotary or no positions. All else
must be as in the paper. The page also has untrained weights, the initial ones of --seed. With two runs, it has the
weights of both instead and compares them; the models must have the same task and sizes.

Of any other Transformer or GPT with full attention, the page shows the attention alone: the weights of all layers and
heads for a sentence of at most {attention.LONGEST} tokens, and beside each weight its product with its gradient:

  minitransformer explore runs/shakespeare --word "To be, or not"

A BERT reads two sentences, and the page shows its attention in both, with the gradient of their cosine (see
`minitransformer embed`). It may be in a folder of Hugging Face, and {INSTALLED} is the one that `embed` takes:

  minitransformer explore {INSTALLED} "We sat on the bank." "My bank is closed."

Only programs on this computer can read the page, and it loads nothing from elsewhere. Ctrl-C ends the command, and the
page stays open as it is. To keep the page, or to show it to others, copy it to a folder that any web server can offer:

  minitransformer explore runs/reverse --write page
"""
PORTS = range(1024, 65536)  # those that need no privileges


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="folder of a run, such as runs/reverse, a checkpoint or a model file (default: the running example)",
    )
    parser.add_argument(
        "others", metavar="RUN | SENTENCE", nargs="*", help="a run to compare; for a BERT, two sentences"
    )
    parser.add_argument("--word", metavar="WORD", help="what the model reads (default: an example of its task)")
    parser.add_argument("--answer", metavar="WORD", help="what the model should write (default: the right answer)")
    parser.add_argument(
        "--write", metavar="FOLDER", type=Path, help="copy the page to a new folder instead of opening it"
    )
    group = parser.add_argument_group("advanced options")
    group.add_argument("--port", type=int, metavar="N", help="port of the local address (default: any free one)")
    group.add_argument("--no-browser", action="store_true", help="only print the address")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Copy the page, or serve it until Ctrl-C."""
    check_options(arguments)
    data, origin = make_data(arguments)
    about = {"title": data["title"], "answer": origin} if origin else {name: data[name] for name in ("title", "cosine")}
    print(data["title"] + (f" ({origin})" if origin else ""), flush=True)

    def ready(address: str) -> None:
        if len(arguments.others) == 1:
            address += "#view=compare"
        print(f"{address} (Ctrl-C ends)", flush=True)
        if arguments.json:
            print(json_line({**about, "address": address}), flush=True)
        if not arguments.no_browser:
            # a browser that runs in the terminal is not waited for
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    if arguments.write is None:
        serve(data, arguments.port or 0, ready)
        return 0, None
    write_page(data, arguments.write)
    print(f"saved {arguments.write / 'index.html'}")
    return 0, {**about, "folder": str(arguments.write)}


def check_options(arguments: argparse.Namespace) -> None:
    """ValueError for options that make no sense, and OSError for a folder that cannot be written."""
    if arguments.port is not None and arguments.port not in PORTS:
        raise ValueError(f"--port must be from {PORTS[0]} to {PORTS[-1]}, got {arguments.port}")
    if arguments.write is not None:
        if arguments.port is not None or arguments.no_browser:
            raise ValueError("--write copies the page and opens nothing: --port and --no-browser are not allowed")
        check_new(arguments.write)


def make_data(arguments: argparse.Namespace) -> tuple[Data, str | None]:
    """What the page shows, and whose answer it has, if it has one."""
    run, others = arguments.run, arguments.others
    if run is None:
        word = WORD if arguments.word is None else arguments.word
        return example_data(word, arguments.answer), "the right answer" if arguments.answer is None else "your answer"
    folder = None if run == INSTALLED and not kind_of(run) else run
    if len(others) > 1 or folder is None or is_huggingface_folder(folder):
        return two_sentences(folder, arguments), None
    model, metadata = load_model(run, "reverse")
    if isinstance(model, BERT):
        raise ValueError(f"{run} is a BERT: {TWO}")
    reason = None if others else why_attention(model)
    writing = writing_of(model, metadata)
    word = writing.example if arguments.word is None else arguments.word
    if word is None:
        raise ValueError(f"--word must say what the model reads: {run} has no task with an example")
    source = writing.encode(word)
    target, origin = writing.solve(word), "the right answer"
    if arguments.answer is not None:
        target, origin = writing.encode(arguments.answer), "your answer"
    elif target is None:
        origin = "what the model writes"
    if reason:
        data = attention_data(model, writing, source, target)
        print(f"note: {reason}; so the page shows its attention alone", file=sys.stderr)
        return data, origin
    data = model_data(model, writing, source, target, seed=arguments.seed)
    return (beside(data, run, *others) if others else data), origin


def two_sentences(folder: str | None, arguments: argparse.Namespace) -> Data:
    """The attention of a BERT, see `open_bert`, in two sentences."""
    model, tokenizer = open_bert(folder)
    if len(arguments.others) != 2:
        raise ValueError(f"{arguments.run} is a BERT: {TWO}")
    if arguments.word is not None or arguments.answer is not None:
        raise ValueError("a BERT writes nothing, so --word and --answer are not allowed")
    for sentence in arguments.others:
        check_known(tokenizer, sentence, "a sentence")
    return sentences_data(model, tokenizer, *arguments.others)


def beside(data: Data, run: str, other: str) -> Data:
    """The first run's data, with the second run's weights instead of untrained ones. Both get one source and answer."""
    names = pair_names((run, other))
    model, metadata = load_model(other, "reverse")
    check_model(model)
    writing = writing_of(model, metadata)
    check_same("tokens", data["tokens"], list(writing.tokens), names)
    return pair_data(data, model_data(model, writing, data["source"], data["target"]), names)


def why_attention(model: Any) -> str | None:
    """What is in the way of the whole page, or None. ValueError for a model whose attention cannot be shown either."""
    try:
        check_model(model)
    except ValueError as error:
        attention.check_attention(model)
        return str(error)
    return None
