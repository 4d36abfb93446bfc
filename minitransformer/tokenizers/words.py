"""Cutting a text into words, which no token is to cross, by the pattern of GPT-2 (Radford et al. 2019):

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

A word is an English ending, or letters, or digits, or signs, each with one space in front if there is one, or white
space. Of several white characters before a word the last one is left to it, which matters if that is a space.
Words laid side by side are the text again.

Python's `re` has no \\p{L} (letters) and \\p{N} (digits and other numbers), so both are made from what it has. Which
characters they are is as in the Unicode tables of this Python.
"""

import functools
import itertools
import re
import sys

from minitransformer.progress import tqdm

BATCH = 50_000  # words between two looks of the progress bar
LONG = 1_000_000  # characters from which on a bar is worth showing

# the characters with the property White_Space; `re` would also count U+001C to U+001F, and `regex` does not
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@functools.cache
def word_pattern():
    """GPT-2's pattern, compiled. Made when it is first needed, because that takes a look at all of Unicode.

    \\w is letters, numbers (also "Ⅷ" and "½") and the underscore, so \\w without the last two is the letters.
    """
    numbers = _as_ranges(c for c in map(chr, range(sys.maxunicode + 1)) if c.isnumeric() and not c.isalpha())
    letter, number, sign = rf"[^\W_{numbers}]", rf"[{numbers}]", rf"(?:[^\w{SPACE}]+|_+)"
    return re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?{sign}+|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+")


def _as_ranges(characters):
    """Rising characters as the inside of a character class: "abcx" -> "a-cx-x"."""
    ranges = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def split_words(text):
    """The words of a text, which side by side are the text again -> list of str."""
    return word_pattern().findall(text)


def batches_of_words(text, title):
    """The words of a text, some thousands at a time, with a progress bar called `title` if the text is long."""
    words = (match.group() for match in word_pattern().finditer(text))
    with progress_bar(text, total=len(text), desc=title, unit="char", unit_scale=True) as bar:
        while batch := list(itertools.islice(words, BATCH)):
            yield batch
            bar.update(sum(map(len, batch)))


def progress_bar(text, **options):
    """A bar for work on `text`: on a terminal, if the text is long."""
    return tqdm(disable=None if len(text) >= LONG else True, **options)
