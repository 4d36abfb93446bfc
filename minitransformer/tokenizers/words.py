"""Splitting a text into words with the pattern of GPT-2 (Radford et al. 2019); no token crosses a word's end:

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

A word is an English ending, or letters, digits or other signs with at most one space before them, or white space. The
last of several white space characters goes to the word after them, if it is a space. The words joined together are the
text again.

Python's `re` lacks \\p{L} (letters) and \\p{N} (digits and other numbers), so they are built here from what it has. The
Unicode tables of the running Python decide which characters belong to them.
"""

import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from minitransformer.progress import tqdm

BATCH = 50_000  # words between two updates of the progress bar
LONG = 1_000_000  # characters; a progress bar is shown for texts of at least this length

# the characters with the property White_Space; `re` would also count U+001C to U+001F, and `regex` does not
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@functools.cache
def word_pattern() -> re.Pattern[str]:
    """GPT-2's pattern, compiled on first use, because that takes a loop over all of Unicode.

    \\w matches letters, numbers (also "Ⅷ" and "½") and the underscore, so \\w without the last two is the letters.
    """
    numbers = _as_ranges(c for c in map(chr, range(sys.maxunicode + 1)) if c.isnumeric() and not c.isalpha())
    letter, number, sign = rf"[^\W_{numbers}]", rf"[{numbers}]", rf"(?:[^\w{SPACE}]+|_+)"
    return re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?{sign}+|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+")


def _as_ranges(characters: Iterable[str]) -> str:
    """Characters in ascending order as the inside of a character class: "abcx" -> "a-cx-x"."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def split_words(text: str) -> list[str]:
    """The words of a text. Joined together they are the text again."""
    return word_pattern().findall(text)


def batches_of_words(text: str, title: str) -> Iterator[list[str]]:
    """The words of a text, `BATCH` at a time, with a progress bar called `title` if the text is long."""
    words = (match.group() for match in word_pattern().finditer(text))
    with progress_bar(text, total=len(text), desc=title, unit="char", unit_scale=True) as bar:
        while batch := list(itertools.islice(words, BATCH)):
            yield batch
            bar.update(sum(map(len, batch)))


def progress_bar(text: str, **options: Any) -> tqdm:
    """A progress bar for work on `text`. It is shown on a terminal, and only if the text is long."""
    return tqdm(disable=None if len(text) >= LONG else True, **options)
