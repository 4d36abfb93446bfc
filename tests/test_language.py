"""Old names and awkward phrases do not come back: a table of both, and what to say instead.

Each entry is first tried on a text that contains it, so we know that the search works, and then on the whole project.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
HELD = ("minitransformer", "lessons", "tests", "docs", "plots", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
THIS_FILE = Path(__file__).relative_to(ROOT).as_posix()  # it quotes them all
QUOTES = {  # (file, words): an old name that a file must know, or somebody else's name
    ("tests/strict/freeze_cupy_api.py", 'accumulate"'),  # a method of NumPy's
}

# what stands after something, not behind it
PARTS = (
    "softmax|sub-?layers?|norms?|layers?|means?|sum|attention|dropout|eos|bos|letters|padding|source|rows?|words?|tokens?|"
    "ids|vocabulary|tokenizer|texts?|header|end|change|them"
)
# (regular expression of what begins with a word, what to say instead, an example); names are case-sensitive, and the
# changelog may mention them
NAMES = [
    (r"(?:KeyValues|make_kvs)\b", "KVCache", "from layers.kv import KeyValues"),
    (r"(?:a|an|the|its|each) kv\b(?![ _-]*(?:cache|projection)|\.)", "KV cache", "decoding with a kv"),
    (r"\w*[Ss]tepwise\w*", "incremental", "import exhibits_stepwise"),
    (r"at_once\b", "micro_batch_size", "backward(batch, at_once=4)"),
    (r"(?<=--)accumulate\b|(?<!\.)accumulate ?=|(?<=[\"'])accumulate[\"']", "grad_accumulation_steps",
     "train(accumulate=3)"),
    (r"(?:settings|arguments|self)\.accumulate\b", "grad_accumulation_steps", "arguments.accumulate"),
    (r"\w*(?:put_away|take_up|taken_up)\w*\b", "save, resume", "def put_away(run):"),
    (r"[Kk]eeper\b", "Checkpointer", "keeper = Keeper(folder)"),
    (r"Begun\b", "ResumedRun", "def resume(path) -> Begun:"),
    (r"(?:Watch(?:er|ing)?|watcher)\b", "anomaly hooks, or evaluation callback", "class Watcher:"),
    (r"(?:class|import|except|\w+,) (?:Found|Here|Finding)\b|(?:Found|Here|Finding)\(", "one name", "class Here:"),
    (r"room\b(?= ?[=,)\]:]| \+)", "max_new_tokens, or max_len", "def beam_search(log_p, room, beam=4):"),
    (r"(?:ALONE|Team)\b", "ThreadTeam", "from minitransformer.system.process import Team"),
    (r"written_whole\b", "atomic_write", "with written_whole(path) as partial:"),
    (r"REFUSALS\b", "INPUT_ERRORS, or docs/error-messages.md", "see REFUSALS.md"),
    (r"pip install '?minitransformer\b", "-e '.[...]' in a checkout", "pip install 'minitransformer[mpi]'"),
    (r"(?:continue_prompts|models\.(?:huggingface|pytorch|summary))\b", "the new room's name", "models.huggingface"),
]  # fmt: skip
# a space also matches a line break
PHRASES = [
    ("what there is", "which: available devices, all lessons, ...", "list what there is to compute on"),
    ("to be had", "who offers it", "where it is to be had"),
    ("but for (?:eps|rounding|an?|the|those|that|another)", "except for", "orthogonal to x_hat but for eps"),
    ("which \\w+ (?:has|have) not(?=\\W*(?:[.,;:)\"|]|$))", "which ... lacks", "erf, which NumPy has not: from it"),
    ("(?<!there\\s)are none", "there are none, or are empty", "ids that are none"),
    ("in place of", "instead of", "23 ms in place of 15"),
    ("(?:derivatives?|gradients?) of (?:the )?\\w+ by(?= (?:x|y|z|the|its|each|every))", "with respect to",
     "the derivative of the loss by x"),
    (f"behind (?:the |a |an |its |each |every |all |their )?(?:\\w+ )?(?:{PARTS})", "after", "behind each sub-layer"),
    ("one behind the other", "one after another", "the arrays, one behind the other"),
    ("windows?,? (?:\\w+,? ){0,4}side by side", "consecutive windows", "windows that lie side by side"),
    ("dearer", "costs more", "how much dearer key j is"),
    ("(?:lets?|letting) (?:itself|themselves) be", "can be", "it lets itself be read"),
    ("by nobody", "who does it", "a bit is lost by nobody"),
    ("quite (?:0|1|zero|one)", "exactly 0, or exactly 1", "a weight quite 0 or 1"),
    ("(?:puts?|putting) (?:it |them |itself |away |(?:the|a|its) \\w+ )?away", "save", "puts the training away"),
    ("(?:takes?|taken|took) (?:it |them )?up again", "resume", "it can be taken up again"),
    ("to the same bits", "resuming gives bit-identical results", "goes on to the same bits"),
    ("(?:is|are) said to", "error messages, or the message for", "what is said to bad input"),
    ("it should be so that", "this should hold but does not", "it should be so that x = y"),
    ("anew", "again", "begin anew"),
    ("(?:makes?|made|making) (?:an? )?(?!all|any|copies|each|most|none|one|sense|some|use)\\w+ of (?:them|this|these)",
     "turn them into", "a softmax makes weights of them"),
    ("as good as each other", "equally good", "the two are as good as each other"),
    ("(?<!there\\s)is no (?:accident|assumption|contradiction|evidence|proof|sandbox|trick)", "isn't",
     "that is no proof"),
    ("less (?:heads|letters|lines|numbers|rows|steps|tokens|weights|words)", "fewer", "with less words"),
    ("(?:the )?ways part", "the paths branch", "where the ways part"),
    ("other options than", "options other than", "a run with other options than these"),
    ("some (?:hundred|thousand) \\w+", "about a hundred, or a few hundred", "after some thousand steps"),
    ("go on with lesson", "continue with", "go on with lesson 01"),
    ("by and by", "gradually", "it learns by and by"),
    ("let us", "let's", "now let us look"),
]  # fmt: skip


class Hit(NamedTuple):
    """A place where a word of the table stands."""

    path: str
    line: int
    words: str
    instead: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.words!r}: say {self.instead}"


def name_regex(pattern):
    """A name as a pattern that begins where a word does: the search looks at no other place, which makes it fast."""
    return re.compile(rf"\b(?:{pattern})")


def phrase_regex(phrase):
    """A phrase as a pattern in which a space is any white space, also a line break in a comment or a quotation."""
    return re.compile(rf"\b(?:{phrase})(?!\w)".replace(" ", r"(?:\s+(?:[#>]\s+)?)"), re.IGNORECASE | re.MULTILINE)


def one_of(patterns):
    """The patterns in one: one search finds out that a text has none of them."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)


NAME_PATTERNS = [(name_regex(pattern), instead) for pattern, instead, _ in NAMES]
PHRASE_PATTERNS = [(phrase_regex(phrase), instead) for phrase, instead, _ in PHRASES]
ANY_NAME = name_regex(one_of(pattern for pattern, *_ in NAMES))
ANY_PHRASE = phrase_regex(one_of(phrase for phrase, *_ in PHRASES))


def find_hits(path, text):
    """All old names and awkward phrases in a text."""
    patterns = NAME_PATTERNS if path != "CHANGELOG.md" and ANY_NAME.search(text) else []
    patterns = patterns + PHRASE_PATTERNS if ANY_PHRASE.search(text) else patterns
    for pattern, instead in patterns:
        for match in pattern.finditer(text):
            line, words = text.count("\n", 0, match.start()) + 1, " ".join(match.group().split())
            if (path, words) not in QUOTES:
                yield Hit(path, line, words, instead)


def hits_in(part):
    """All hits in a file, or in the source files and pages of a folder."""
    base = ROOT / part
    files = [base] if base.is_file() else sorted(f for f in base.rglob("*") if f.suffix in (".py", ".md"))
    paths = {file.relative_to(ROOT).as_posix(): file for file in files}
    return [
        hit for path, file in paths.items() if path != THIS_FILE for hit in find_hits(path, file.read_text("utf-8"))
    ]


def test_every_entry_is_found():
    for _, instead, example in (*NAMES, *PHRASES):
        assert instead in [hit.instead for hit in find_hits("README.md", f"Some text.\n{example}\n")], example


def test_phrases_are_found_across_lines_and_in_any_case():
    text = '"""In place\n    of a sum,\n    # the gradient of the loss\n    # by x."""'
    assert [(hit.line, hit.instead) for hit in find_hits("a.py", text)] == [(1, "instead of"), (3, "with respect to")]


def test_hit_says_where_it_is_and_the_changelog_may_mention_old_names():
    (hit,) = find_hits("docs/a.md", "First line.\nIt is to be had.\n")
    assert str(hit) == "docs/a.md:2: 'to be had': say who offers it"
    assert list(find_hits("CHANGELOG.md", "`KeyValues` -> `KVCache`")) == []


GOOD = """
In place into arrays made in this call; add in place.
np.add.accumulate(x), itertools.accumulate(x); gradients accumulate.
the kv projection, and kv.W
There are none. Here a lock prevents it. Found nothing.
half a checkpoint is left behind; one name behind which there are two libraries
the rooms of the house; there is no room for doubt
minitransformer check 06 --watch, which watches a file
not for training but for testing; it takes up 10 MB
two plots side by side; the derivative is multiplied by x
which it has not seen before
make each of them, make use of this, most of them; some thousands of tokens; there is no proof here; always part of it
"""


def test_good_text_passes():
    assert [str(hit) for hit in find_hits("README.md", GOOD)] == []


@pytest.mark.exhaustive
def test_no_part_of_the_project_has_any():
    hits = [hit for part in HELD for hit in hits_in(part)]
    assert not hits, "\n".join(["", *map(str, hits)])
