"""Splitting a text into words with the pattern of GPT-2 (Radford et al. 2019) or of a later model; no token crosses a
word's end.

To GPT-2, a word is an English ending, or letters, digits or other signs with at most one space before them, or white
space. The last of several white space characters goes to the word after them, if it is a space. To Qwen and Llama 3,
each digit is a word, or up to three are; one sign of any kind may stand before letters; and line breaks end a word. The
words joined together are the text again.

Python's `re` lacks \\p{L} (letters) and \\p{N} (digits and other numbers), so they are built here from Unicode's
categories, those of version 16 on every Python.
"""

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from minitransformer.system.progress import tqdm

BATCH = 50_000  # words between two updates of the progress bar
LONG = 1_000_000  # characters; a progress bar is shown for texts of at least this length
_LATER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {  # as the models' own files have them
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "qwen": _LATER.replace("DIGITS", ""),  # Qwen 2 and 3
    "llama3": _LATER.replace("DIGITS", "{1,3}"),
}

# the characters with the property White_Space; `re` would also count U+001C to U+001F, and `regex` does not
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

# The letters and numbers that Unicode 14 to 16 added: Python has known all of them since 3.14, and the ids of a text
# should not depend on its version.
NEWER_LETTERS = (
    r"\u0870-\u0887\u0889-\u088e\u08b5\u08c8-\u08c9\u0c5d\u0cdd\u170d\u171f\u1b4c\u1c89-\u1c8a\u2c2f\u2c5f"
    r"\u9ffd-\u9fff\ua7c0-\ua7c1\ua7cb-\ua7cd\ua7d0-\ua7d1\ua7d3\ua7d5-\ua7dc\ua7f2-\ua7f4\U00010570-\U0001057a"
    r"\U0001057c-\U0001058a\U0001058c-\U00010592\U00010594-\U00010595\U00010597-\U000105a1\U000105a3-\U000105b1"
    r"\U000105b3-\U000105b9\U000105bb-\U000105bc\U000105c0-\U000105f3\U00010780-\U00010785\U00010787-\U000107b0"
    r"\U000107b2-\U000107ba\U00010d4a-\U00010d65\U00010d6f-\U00010d85\U00010ec2-\U00010ec4\U00010f70-\U00010f81"
    r"\U00011071-\U00011072\U00011075\U0001123f-\U00011240\U00011380-\U00011389\U0001138b\U0001138e"
    r"\U00011390-\U000113b5\U000113b7\U000113d1\U000113d3\U00011740-\U00011746\U00011ab0-\U00011abf"
    r"\U00011bc0-\U00011be0\U00011f02\U00011f04-\U00011f10\U00011f12-\U00011f33\U00012f90-\U00012ff0\U0001342f"
    r"\U00013441-\U00013446\U00013460-\U000143fa\U00016100-\U0001611d\U00016a70-\U00016abe\U00016d40-\U00016d6c"
    r"\U00018cff\U0001aff0-\U0001aff3\U0001aff5-\U0001affb\U0001affd-\U0001affe\U0001b11f-\U0001b122\U0001b132"
    r"\U0001b155\U0001df00-\U0001df1e\U0001df25-\U0001df2a\U0001e030-\U0001e06d\U0001e290-\U0001e2ad"
    r"\U0001e4d0-\U0001e4eb\U0001e5d0-\U0001e5ed\U0001e5f0\U0001e7e0-\U0001e7e6\U0001e7e8-\U0001e7eb"
    r"\U0001e7ed-\U0001e7ee\U0001e7f0-\U0001e7fe\U0002a6de-\U0002a6df\U0002b735-\U0002b739\U0002ebf0-\U0002ee5d"
    r"\U00031350-\U000323af"
)
NEWER_NUMBERS = (
    r"\U00010d40-\U00010d49\U000116d0-\U000116e3\U00011bf0-\U00011bf9\U00011f50-\U00011f59\U00016130-\U00016139"
    r"\U00016ac0-\U00016ac9\U00016d70-\U00016d79\U0001ccf0-\U0001ccf9\U0001d2c0-\U0001d2d3\U0001e4f0-\U0001e4f9"
    r"\U0001e5f1-\U0001e5fa"
)


@functools.cache
def word_pattern(name: str = "gpt2") -> re.Pattern[str]:
    """One of PATTERNS, compiled on first use, because that takes a loop over all of Unicode."""
    members: dict[str, list[str]] = {"L": [], "N": []}
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = unicodedata.category(character)[0]
        if kind in members:
            members[kind].append(character)
    letter, number = _as_ranges(members["L"]) + NEWER_LETTERS, _as_ranges(members["N"]) + NEWER_NUMBERS
    members_of = {r"\p{L}": letter, r"\p{N}": number, r"\s": SPACE, r"\S": f"^{SPACE}"}
    parts, inside = re.split(r"([\[\]])", PATTERNS[name]), False
    for place, part in enumerate(parts):
        inside = part == "[" or (inside and part != "]")
        for property, characters in members_of.items():
            parts[place] = parts[place].replace(property, characters if inside else f"[{characters}]")
    return re.compile("".join(parts))


def _as_ranges(characters: Iterable[str]) -> str:
    """Characters in ascending order as the inside of a character class: "abcx" -> "a-cx-x"."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def split_words(text: str, pattern: str = "gpt2") -> list[str]:
    """The words of a text. Joined together they are the text again."""
    return word_pattern(pattern).findall(text)


def batches_of_words(text: str, title: str, pattern: str = "gpt2") -> Iterator[list[str]]:
    """The words of a text, `BATCH` at a time, with a progress bar called `title` if the text is long."""
    words = (match.group() for match in word_pattern(pattern).finditer(text))
    with progress_bar(text, total=len(text), desc=title, unit="char", unit_scale=True) as bar:
        while batch := list(itertools.islice(words, BATCH)):
            yield batch
            bar.update(sum(map(len, batch)))


def progress_bar(text: str, **options: Any) -> tqdm:
    """A progress bar for work on `text`. It is shown on a terminal, and only if the text is long."""
    return tqdm(disable=None if len(text) >= LONG else True, **options)
