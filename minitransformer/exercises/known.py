"""The known mistakes of learners: what is wrong, and a question that leads out of it, from lessons/mistakes.txt.

The checker of the exercises, the sitting, the clinic of lesson 15 and the explorer take these words from the list, by
the mistake's id. Each adds only what the mistake looks like in its place: a change of the solution, a formula of a
station, a function that replaces the library's, a line of the explorer's engine. What is the same mistake in two places
is one entry.

Three kinds of planted bugs are not in the list. The lines that a lesson asks for (HANDS in lessons/checks) have hints
about one number of that lesson, each a sentence beside its formula. The museum in tests/museum keeps bugs that were
published, with their sources. And tests/mutation changes the source by itself.
"""

import functools
import re
from typing import NamedTuple

from minitransformer.course import FOLDER

LIST = FOLDER / "mistakes.txt"
ENTRY = re.compile(r"^([\w-]+): (.+)\n((?:  (?!= ).+\n)+)((?:  .+\n)*)", re.MULTILINE)


class Known(NamedTuple):
    """The words for a mistake."""

    name: str  # what is wrong, as half a sentence: "the scores are not divided by √D"
    question: str  # the answer to it is the remedy
    moral: str  # what it teaches, "" if the explorer does not have it


@functools.cache
def known_mistakes() -> dict[str, Known]:
    """The list, by id."""
    found: dict[str, Known] = {}
    for id, name, question, moral in ENTRY.findall(LIST.read_text("utf-8")):
        if id in found:
            raise ValueError(f"{LIST} has two mistakes with the id {id}")
        found[id] = Known(name, " ".join(question.split()), " ".join(moral.split()).removeprefix("= "))
    return found


def known(id: str) -> Known:
    """The mistake with this id; LookupError if the list has none."""
    if id not in known_mistakes():
        raise LookupError(f"{LIST} has no mistake with the id {id}")
    return known_mistakes()[id]


class Listed:
    """A mistake whose words are in the list."""

    id: str

    @property
    def name(self) -> str:
        """What is wrong, as half a sentence."""
        return known(self.id).name

    @property
    def question(self) -> str:
        """A question, the answer to which is the remedy."""
        return known(self.id).question
