"""`minitransformer translate`: translate sentences with a trained model."""

import argparse
import io
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_choice
from minitransformer.cli.dialogue import Dialogue, converse, lines_of_input, on_terminal
from minitransformer.data.pairs import tidy
from minitransformer.decoding.search.translate import ALPHA, BEAM, Translation, encode_source, find_translations
from minitransformer.models import Transformer
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.recipes.options import from_1_to
from minitransformer.recipes.saved import load_model
from minitransformer.system.files import check_output, read_lines, read_text
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import Tokenizer, tokenizer_from_dict

DESCRIPTION = """\
Translate sentences with a model that `minitransformer train translation` has saved, each with beam search as in the
paper: of all translations that the search finds, it prints the most likely one, after a correction for its length.

  minitransformer translate runs/translation "Der Hund sieht den König."
  minitransformer translate runs/translation "Guten Tag." "Gute Nacht." --beam 1
  minitransformer translate runs/translation "Ein Hund." --attention map.png
  minitransformer translate runs/translation --file german.txt > english.txt

Without sentences, it asks for them until you press Ctrl-D, or translates each line of its input:

  minitransformer translate runs/translation
  minitransformer translate runs/translation < german.txt

An empty line gets an empty line. With --json the last line has, for each sentence, its translation, the tokens of it
(a space is part of the token that it begins), the log probability, and the score, by which the search ranks.
"""
LINES_AT_ONCE = 400  # of a pipe: enough to make batches of about the same length
ATTENTION = {  # what --attention draws, as in figures 3 to 5 of the paper: its title, and what each row is
    "cross": ("Cross-attention", "token to be written"),
    "encoder": ("Self-attention of the encoder", "token that attends"),
    "decoder": ("Self-attention of the decoder", "last token so far"),
}
WIDEST_BEAM = 1000  # the memory and the time of a step grow with it
SHOWN = 10  # characters that a note names
TITLE = 80  # characters of the translation in the title of the figure


class Translator(NamedTuple):
    """A model that translates, and how it searches."""

    model: Any
    tokenizer: Tokenizer
    beam: int
    alpha: float
    characters: frozenset[str] | None = None  # of the sources of training; None if the model's file does not say it

    def refusal(self, sentence: str) -> str | None:
        """Why `sentence` cannot be translated, or None."""
        try:
            encode_source(self.tokenizer, tidy(sentence), self.model.config.max_len, self.model.config)
        except ValueError as error:
            return str(error)
        return None

    def translate(
        self, sentences: Sequence[str], on_progress: Callable[[int], object] | None = None
    ) -> list[Translation]:
        """The translation of each sentence."""
        tidied = [tidy(sentence) for sentence in sentences]
        self.note_unseen(tidied)
        return find_translations(self.model, self.tokenizer, tidied, self.beam, self.alpha, on_progress=on_progress)

    def answer(self, sentence: str, brief: bool) -> dict[str, Any]:
        """Print the translation of a sentence that was typed -> values for JSON."""
        (translation,) = self.translate([sentence])
        print(translation.text)
        return self.values(sentence, translation)

    def note_unseen(self, sentences: Sequence[str]) -> None:
        """Say on stderr which characters of the sentences the model has never seen, and how it reads them."""
        unseen = sorted({*"".join(sentences)} - self.characters - {" "}) if self.characters is not None else []
        if unseen:
            more = f" and {len(unseen) - SHOWN} more" if len(unseen) > SHOWN else ""
            names = ", ".join(map(repr, unseen[:SHOWN])) + more
            print(f"note: the model has never seen {names}: it reads their bytes, and may err", file=sys.stderr)

    def values(self, sentence: str, translation: Translation) -> dict[str, Any]:
        """A sentence and its translation for JSON."""
        text, ids, log_prob, score = translation
        tokens = [self.tokenizer.tokens[id] for id in ids]
        return {"source": sentence, "text": text, "tokens": tokens, "log_prob": log_prob, "score": score}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "run", metavar="RUN", help="folder of a run, such as runs/translation, a checkpoint or a model file"
    )
    parser.add_argument(
        "sentences", nargs="*", default=[], metavar="SENTENCE", help="what to translate (default: ask for sentences)"
    )
    parser.add_argument("--file", metavar="FILE", help="translate this UTF-8 file, which has one sentence per line")
    parser.add_argument(
        "--beam",
        type=int,
        default=BEAM,
        metavar="N",
        help=f"how many beginnings the search keeps at each step; 1 is greedy (default {BEAM})",
    )
    parser.add_argument(
        "--attention",
        metavar="PNG",
        help="draw where each head of cross-attention looks for each token of the translation of one sentence",
    )
    group = parser.add_argument_group("advanced options")
    group.add_argument(
        "--alpha",
        type=float,
        default=ALPHA,
        metavar="X",
        help=f"strength of the length penalty; 0 prefers short translations (default {ALPHA}, as in the paper)",
    )
    group.add_argument(
        "--attention-of",
        default="cross",
        metavar="KIND",
        help="what --attention draws: cross (the default), or the encoder's or decoder's self-attention",
    )
    group.add_argument("--layer", type=int, metavar="N", help="the layer that --attention draws (default: the last)")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Translate, and print."""
    check_options(arguments)
    translator = load_translator(arguments)
    if arguments.sentences:
        found = translator.translate(arguments.sentences)
        results = [translator.values(*pair) for pair in zip(arguments.sentences, found, strict=True)]
        print_texts(results)
        if arguments.attention is not None:
            draw_attention(translator, found[0], arguments)
    elif arguments.file is not None:
        lines = list(read_lines(io.StringIO(read_text(arguments.file)), arguments.file))
        with tqdm(total=len(lines), unit="sentence") as bar:
            results = translate_lines(translator, lines, bar.update)
        print_texts(results)
    elif on_terminal():
        return converse(Dialogue("Type a sentence", translator.answer, "translate"))
    else:
        lines_left = lines_of_input("there is no input to read sentences from: give a sentence or --file")
        results = []
        for lines in chunks(lines_left):
            results += translate_lines(translator, lines)
            print_texts(results[-len(lines) :])
    return 2 if any("error" in result for result in results) else 0, results


def check_options(arguments: argparse.Namespace) -> None:
    """ValueError, naming the option, for options that make no sense, and OSError for a figure that cannot be saved."""
    from_1_to(WIDEST_BEAM)("--beam", arguments.beam)
    check_choice("--attention-of", arguments.attention_of, ATTENTION)
    if not arguments.alpha >= 0:
        raise ValueError(f"--alpha must be at least 0, got {arguments.alpha}")
    if arguments.file is not None and arguments.sentences:
        raise ValueError("give sentences or --file, not both")
    if arguments.attention is None:
        if arguments.layer is not None:
            raise ValueError("--layer chooses what --attention draws: give a file for the figure, too")
        return
    if len(arguments.sentences) != 1 or not tidy(arguments.sentences[0]):
        raise ValueError(f"--attention draws the translation of one sentence, got {len(arguments.sentences)}")
    check_output(arguments.attention)


def load_translator(arguments: argparse.Namespace) -> Translator:
    """The model of RUN. Raises ValueError for one that does not translate, or has no attention to draw."""
    model, metadata = load_model(arguments.run, "translation")
    if not isinstance(model, Transformer | Seq2Seq) or "tokenizer" not in metadata:
        if metadata.get("task") == "translation":
            raise ValueError(f"{arguments.run} has no tokenizer: finish the run with `minitransformer train --resume`")
        raise ValueError(
            f"{arguments.run} is a {type(model).__name__} that does not translate: `minitransformer train translation` "
            "makes a model that does"
        )
    if arguments.attention is not None:
        kind, layers = model.config.attention, 1 if isinstance(model, Seq2Seq) else model.config.num_layers
        if kind == "none":
            raise ValueError(f"{arguments.run} has no attention to draw")
        if isinstance(model, Transformer) and kind != "full":
            raise ValueError(f"--attention draws full attention, and that of {arguments.run} is {kind}")
        if isinstance(model, Seq2Seq) and arguments.attention_of != "cross":
            raise ValueError(f"{arguments.run} has no self-attention to draw")
        if arguments.layer is not None and not 1 <= arguments.layer <= layers:
            raise ValueError(f"--layer must be from 1 to {layers}, got {arguments.layer}")
    characters = metadata.get("characters")
    known = frozenset(characters) if isinstance(characters, str) else None
    return Translator(model, tokenizer_from_dict(metadata["tokenizer"]), arguments.beam, arguments.alpha, known)


def translate_lines(
    translator: Translator, lines: Sequence[str], on_progress: Callable[[int], object] = lambda count: None
) -> list[dict[str, Any]]:
    """The translation of each line, as values for JSON. A line that is refused has an error instead, which is printed.

    `on_progress` is called with the number of lines that are done.
    """
    refusals = [translator.refusal(line) for line in lines]
    for refusal in filter(None, refusals):
        on_progress(1)
        print(f"minitransformer translate: {refusal}", file=sys.stderr)
    kept = [line for line, refusal in zip(lines, refusals, strict=True) if refusal is None]
    found = iter(translator.translate(kept, on_progress))
    return [
        translator.values(line, next(found)) if refusal is None else {"source": line, "error": refusal}
        for line, refusal in zip(lines, refusals, strict=True)
    ]


def print_texts(results: Sequence[dict[str, Any]]) -> None:
    """Print each translation in a line, and an empty line for a sentence that was refused."""
    print("".join(f"{result.get('text', '')}\n" for result in results), end="", flush=True)


def chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines, LINES_AT_ONCE at a time."""
    lines = iter(lines)
    while chunk := list(itertools.islice(lines, LINES_AT_ONCE)):
        yield chunk


def draw_attention(translator: Translator, translation: Translation, arguments: argparse.Namespace) -> None:
    """Draw where each head of one layer looks: in cross-attention for each token of the translation in the source."""
    from minitransformer.plotting import plot_attention, readable, shorten

    model, tokens = translator.model, translator.tokenizer.tokens
    source = encode_source(translator.tokenizer, tidy(arguments.sentences[0]), model.config.max_len, model.config)
    target = np.array([model.config.start, *translation.ids[:-1]])
    kind = arguments.attention_of
    layers = getattr(model.attention_weights(source[None], target[None]), kind)
    layer = arguments.layer or len(layers)
    rows = {"cross": (translation.ids, source), "encoder": (source, source), "decoder": (target, target)}
    queries, keys = ([readable(tokens[int(id)]) for id in np.array(ids)] for ids in rows[kind])
    sentence = tidy(arguments.sentences[0]) if kind == "encoder" else translation.text
    text = readable(shorten(sentence, TITLE), space=" ").replace("$", r"\$")  # $ would begin a formula
    name, query = ATTENTION[kind]
    title = f"{name}, layer {layer} of {len(layers)}: {text}"
    plot_attention(to_host(layers[layer - 1][0]), queries, keys, arguments.attention, title, query)
    print(f"saved {arguments.attention}", file=sys.stderr)
