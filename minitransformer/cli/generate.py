"""`minitransformer generate`: give a trained model a prompt, and print its answer."""

import argparse
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.cli.dialogue import Dialogue, converse
from minitransformer.data import ToyTask, get_task, task_names
from minitransformer.data.parsing import ParsingTask
from minitransformer.data.tasks import append_eos
from minitransformer.decoding import Greedy, Sampling, fill_mask, greedy_decode
from minitransformer.decoding.faster.speculative import GAMMA, Speculation
from minitransformer.decoding.sampling import TEMPERATURE, TOP_P
from minitransformer.interop import TextModel, is_huggingface_folder, load_text_model
from minitransformer.models import Transformer
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.since_2017.bert import BERT
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.models.since_2017.vision import ViT
from minitransformer.recipes.classify import classify
from minitransformer.recipes.options import option_name
from minitransformer.recipes.saved import check_known, load_model, open_model
from minitransformer.tokenizers import Tokenizer, tokenizer_from_dict

DESCRIPTION = """\
Give a prompt to a model that `minitransformer train` has saved. A model of a toy task answers, a language model
continues the text, a masked model fills in every [MASK], which is one character for models of `train masked`, and a
classifier says which label a sentence has:

  minitransformer generate runs/reverse --prompt hello
  minitransformer generate runs/addition --prompt 12+34
  minitransformer generate runs/parsing --prompt "f(x)[1:]"           draws the tree, right or wrong
  minitransformer generate runs/text --prompt "The" --length 1000
  minitransformer generate runs/text --prompt "The" --attention
  minitransformer generate runs/text --prompt "The" --draft runs/text-small
  minitransformer generate path/to/gpt2 --prompt "Attention is"       a GPT-2 saved by Hugging Face
  minitransformer generate runs/masked --prompt "to be or not to [MASK]e"
  minitransformer generate runs/classify --prompt "Return the sum."

Without --prompt, it asks for prompts until you press Ctrl-D, or reads one prompt from each line of its input:

  minitransformer generate runs/reverse
  minitransformer generate runs/reverse < words.txt
"""
OF_DRAFT = ("draft", "draft_tokens")
LANGUAGE_OPTIONS = ("length", "temperature", "top_k", "top_p", "no_repeat", "greedy", "attention", *OF_DRAFT)
LENGTH, GUESSES, DRAWN = 400, 5, {"temperature": TEMPERATURE, "top_p": TOP_P}  # defaults
BEFORE, AFTER = 8, 3  # tokens shown around one that a head looks at
MASK = "[MASK]"
SLACK = 2  # tokens beyond the longest right answer: eos, and one more


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "run", metavar="RUN", help="folder of a run, such as runs/reverse, a checkpoint or a model file"
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help=f'the prompt; "\\n" is a line break, and each {MASK} is a token to fill in (default: ask for prompts)',
    )
    group = parser.add_argument_group("options for language models")
    group.add_argument("--length", type=int, metavar="N", help=f"number of tokens to generate (default {LENGTH})")
    group.add_argument(
        "--temperature",
        type=float,
        metavar="X",
        help=f"sampling temperature: lower values prefer likely tokens (default {TEMPERATURE})",
    )
    group.add_argument(
        "--top-k",
        type=int,
        metavar="K",
        help=f"sample only from the K most likely tokens; of masks and labels: show K guesses (default {GUESSES})",
    )
    help = f"sample from the smallest set of tokens with total probability P (default {TOP_P}; 1 is all of them)"
    group.add_argument("--top-p", type=float, metavar="P", help=help)
    help = "also show where each attention head looked to write the last token"
    group.add_argument("--attention", action="store_true", default=None, help=help)
    group.add_argument("--greedy", action="store_true", default=None, help="always choose the most likely token")
    help = (
        "a smaller model with the same tokenizer, to go faster: it guesses some tokens, and the larger model reads "
        "them all in one pass, and keeps or replaces each so that the text is distributed as if it had written alone"
    )
    group.add_argument("--draft", metavar="RUN", help=help)
    advanced = parser.add_argument_group("advanced options")
    help = "of a language model: never repeat a sequence of N tokens (default: off)"
    advanced.add_argument("--no-repeat", type=int, metavar="N", help=help)
    help = f"tokens that --draft guesses for each pass, gamma in the paper (default {GAMMA})"
    advanced.add_argument("--draft-tokens", type=int, metavar="N", help=help)


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Load the model, and answer the prompt, or all prompts of a dialogue."""
    dialogue = open_dialogue(arguments)
    if arguments.prompt is None:
        return converse(dialogue)
    return 0, dialogue.answer(arguments.prompt, False)


def open_dialogue(arguments: argparse.Namespace) -> Dialogue:
    """Load the model, whose kind decides how it answers. Raises ValueError for a model that cannot."""
    if is_huggingface_folder(arguments.run):
        return language_model(load_text_model(arguments.run), arguments)
    model, metadata = load_model(arguments.run, "reverse")
    if metadata.get("task") in task_names() and isinstance(model, Transformer | GPT | Seq2Seq):
        return toy_model(model, get_task(metadata["task"]), arguments)
    if metadata.get("task") == "parsing" and isinstance(model, Transformer | GPT | Seq2Seq):
        return toy_model(model, ParsingTask(), arguments)
    if "tokenizer" in metadata and isinstance(model, GPT):
        return language_model(TextModel(model, tokenizer_from_dict(metadata["tokenizer"])), arguments)
    if "labels" in metadata and isinstance(model, BERT):
        return classifier(model, metadata, arguments)
    if "tokenizer" in metadata and isinstance(model, BERT):
        return masked_model(model, tokenizer_from_dict(metadata["tokenizer"]), arguments)
    if "tokenizer" in metadata and isinstance(model, Transformer | Seq2Seq):
        raise ValueError(f"{arguments.run} is a model that translates: use `minitransformer translate {arguments.run}`")
    if isinstance(model, ViT):
        raise ValueError(
            f"{arguments.run} is a model that reads images, not text: see docs/library.md for how to ask it"
        )
    raise ValueError(
        f"{arguments.run} is a {type(model).__name__} without a task or a tokenizer: generate takes models that "
        "`minitransformer train` has saved"
    )


def toy_model(model: Any, task: ToyTask, arguments: argparse.Namespace) -> Dialogue:
    """A model of a toy task, which answers greedily."""
    refuse_options(arguments, LANGUAGE_OPTIONS, "of a toy task")
    longest = (model.config.max_len - SLACK) // task.growth  # both source and answer have an end
    longest = longest // 2 if isinstance(model, GPT) else longest  # in a GPT they share the positions

    def answer(prompt: str, brief: bool) -> dict[str, Any]:
        ids = task.encode(prompt)
        if not 1 <= len(ids) <= longest:
            raise ValueError(f"the prompt has {len(ids)} symbols, and this model reads from 1 to {longest}")
        if len(ids) > task.max_len:
            print(f"note: the model was trained on at most {task.max_len} symbols", file=sys.stderr)
        most = max(len(ids), task.max_len) * task.growth + SLACK
        text = task.decode(greedy_decode(model, append_eos(ids[None]), most)[0])
        print(*task.show(prompt, text), sep="\n")
        return {"prompt": prompt, "text": text}

    return Dialogue(f"Type up to {task.max_len} of the symbols {task.symbols}", answer)


def language_model(model: TextModel, arguments: argparse.Namespace) -> Dialogue:
    """A language model, which continues the prompt. Each token is printed as soon as it is generated."""
    choose, kind = choose_tokens(arguments), model.model.config.attention
    length = check_integer("--length", LENGTH if arguments.length is None else arguments.length, least=1)
    no_repeat = check_integer("--no-repeat", arguments.no_repeat or 0, least=0)
    if arguments.attention and kind != "full":
        raise ValueError(f"--attention shows full attention, and that of {arguments.run} is {kind}")
    draft, gamma = None if arguments.draft is None else open_draft(model, arguments), arguments.draft_tokens
    check_integer("--draft-tokens", GAMMA if gamma is None else gamma, least=1)

    def answer(prompt: str, brief: bool) -> dict[str, Any]:
        start = prompt.replace("\\n", "\n") or "\n"
        check_known(model.tokenizer, start, "the prompt")
        used = None if draft is None else Speculation(draft.decoding_state(), gamma or GAMMA)
        pieces: list[Any] = []
        for piece in model.continue_text(start, length, choose, no_repeat=no_repeat, speculation=used):
            before = "" if pieces else start  # printed with the first piece, so that an error of the model comes alone
            print(before + piece.text, end="", flush=True)
            pieces.append(piece)
        print()
        text = "".join(piece.text for piece in pieces)
        log_probs = [piece.log_prob for piece in pieces if piece.log_prob is not None]
        if arguments.attention:
            print_attention(model.model, model.tokenizer, start + text)
        if used:
            rate, tokens = used.rates()
            print(f"\ndraft: {rate:.0%} of the guesses were accepted, {tokens:.2f} tokens per pass")
        return {"prompt": prompt, "text": text, "log_probs": log_probs, **({"draft": used.counts} if used else {})}

    return Dialogue("Type the beginning of a text (\\n is a line break)", answer)


def open_draft(model: TextModel, arguments: argparse.Namespace) -> TextModel:
    """The model of --draft. Raises ValueError, naming it, if it cannot guess for `model`."""
    run = arguments.draft
    if arguments.no_repeat:
        raise ValueError("--no-repeat and --draft exclude each other")
    found, tokenizer = open_model(run, "text")
    if not isinstance(found, GPT) or tokenizer is None:
        raise ValueError(f"--draft {run} is a {type(found).__name__} that does not continue text")
    if tokenizer.to_dict() != model.tokenizer.to_dict():
        raise ValueError(f"--draft {run} has another tokenizer than {arguments.run}: train it on the same text")
    return TextModel(found, tokenizer)


def print_attention(model: Any, tokenizer: Tokenizer, text: str) -> None:
    """For each head, print which token in [ ] it looks at most to write the last token of a text, and how much."""
    ids = tokenizer.encode(text)
    read = ids[-model.config.max_len - 1 : -1]
    print(f"\nwhere each head looked to write {tokenizer.decode(ids[-1:])!r}:")
    for layer, weights in enumerate(model.attention_weights(read[None]), start=1):
        for head, p in enumerate(to_host(weights)[0, :, -1], start=1):
            place = int(p.argmax())
            parts = read[max(0, place - BEFORE) : place], read[place : place + 1], read[place + 1 :][:AFTER]
            before, token, after = (repr(tokenizer.decode(part))[1:-1] for part in parts)
            print(f"  layer {layer}, head {head}: {p[place]:4.0%} at {before}[{token}]{after}")


def masked_model(model: Any, tokenizer: Tokenizer, arguments: argparse.Namespace) -> Dialogue:
    """A model that fills in masks, all at once."""
    refuse_options(arguments, [name for name in LANGUAGE_OPTIONS if name != "top_k"], "for masked text")
    count = check_integer("--top-k", GUESSES if arguments.top_k is None else arguments.top_k, least=1)
    mask_id, max_len = tokenizer.mask_id, model.config.max_len
    known = max(tokenizer.vocab_size, mask_id + 1)
    if model.config.vocab_size != known or model.options["num_classes"] is not None:
        raise ValueError(
            f"{arguments.run} is a BERT that cannot fill in masks: `minitransformer train masked` makes one"
        )

    def answer(prompt: str, brief: bool) -> dict[str, Any]:
        parts = prompt.replace("\\n", "\n").split(MASK)
        check_known(tokenizer, "".join(parts), "the prompt")
        first, *others = map(tokenizer.encode, parts)
        if not others:
            raise ValueError(f"the prompt has no mask: write {MASK} for each token that is to be filled in")
        ids = np.concatenate([first, *(np.append(mask_id, part) for part in others)])
        if len(ids) > max_len:
            raise ValueError(f"the prompt has {len(ids)} tokens, and this model reads at most {max_len}")
        filled = fill_mask(model, ids, mask_id, count)
        ids[ids == mask_id] = filled.ids[:, 0]
        text = tokenizer.decode(ids)
        print(text.replace("\n", "\\n"))  # one line, as the prompt was
        rows = [
            [{"token": tokenizer.decode([token]), "probability": float(p)} for token, p in zip(*row, strict=True)]
            for row in zip(*filled, strict=True)
        ]
        for number, row in enumerate([] if brief else rows, start=1):
            guesses = ", ".join(f"{guess['token']!r} {guess['probability']:.1%}" for guess in row)
            print(f"{MASK} {number}: {guesses}")
        return {"prompt": prompt, "text": text, "masks": rows}

    return Dialogue(f"Type a text with {MASK} for each token that is to be filled in", answer)


def classifier(model: BERT, metadata: dict[str, Any], arguments: argparse.Namespace) -> Dialogue:
    """A model that says which label a sentence has, and how probable the others are."""
    refuse_options(arguments, [name for name in LANGUAGE_OPTIONS if name != "top_k"], "of labels")
    count = check_integer("--top-k", GUESSES if arguments.top_k is None else arguments.top_k, least=1)
    tokenizer, labels = tokenizer_from_dict(metadata["tokenizer"]), metadata["labels"]

    def answer(prompt: str, brief: bool) -> dict[str, Any]:
        check_known(tokenizer, prompt, "the prompt")
        probabilities = classify(model, tokenizer, [prompt])[0]
        found = [{"label": labels[k], "probability": float(probabilities[k])} for k in (-probabilities).argsort()]
        if brief:
            print(found[0]["label"])
        for guess in [] if brief else found[:count]:
            print(f"{guess['probability']:>6.1%}  {guess['label']}")
        return {"prompt": prompt, "text": found[0]["label"], "labels": found[:count]}

    return Dialogue("Type a sentence to see which label it has", answer)


def refuse_options(arguments: argparse.Namespace, names: Iterable[str], kind: str) -> None:
    """ValueError for the first option of `names` that was given."""
    for name in names:
        if getattr(arguments, name) is not None:
            raise ValueError(f"{option_name(name)} is for language models, and {arguments.run} is a model {kind}")


def choose_tokens(arguments: argparse.Namespace) -> Greedy | Sampling:
    """How to choose the next token. Raises ValueError, naming the option, for options that make no sense."""
    given = {name: getattr(arguments, name) for name in ("temperature", "top_k", "top_p")}
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.greedy and given:
        raise ValueError(f"{option_name(next(iter(given)))} and --greedy exclude each other")
    if given.get("temperature") == 0:
        raise ValueError("--temperature must be greater than 0, got 0.0: always the most likely token is --greedy")
    try:
        sampling = Sampling(np.random.default_rng(arguments.seed), **{**DRAWN, **given})
    except ValueError as error:  # it begins with the name
        name, rest = str(error).split(" ", 1)
        raise ValueError(f"{option_name(name)} {rest}") from error
    return Greedy() if arguments.greedy else sampling
