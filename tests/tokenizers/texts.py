"""Many kinds of texts for the tests of the tokenizers, with a naive trainer and a naive encoder to compare with."""

import collections
import functools
import itertools
import unicodedata

from hypothesis import strategies as st

from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.tokenizers.visible import BYTE_ORDER
from minitransformer.tokenizers.words import split_words

ENGLISH = (
    "The old miller's daughter said she'd rather grind the corn herself than wait another 12 days for the wind.\n"
    "\"You'll see,\" he said, \"that the wind will come; it's only late.\" But the wind didn't come, and they've been\n"
    "waiting there, I'm told, for 1,200 days and more. The mill stands still; the miller stands, still, at the mill.\n"
)
UNICODE = (
    "Žluťoučký kůň pěl ďábelské ódy – naïve café, déjà vu, Größe, ½ Ⅷ ٣٤ 二〇二六年、东京とソウル 서울特別市。\n"
    "Привет, мир! Καλημέρα κόσμε! שלום עולם مرحبا 👋🏽🌍 e\u0301 = é, a\u00a0b\u2003c\u3000d, x\x1cy\x1fz,\n"
    "_under_score_ Привет! Привет, café Größe!\n"
)
CODE = (
    "def add(left, right):\n    if left is None:\n        return right\n    return left + right  # 0x1F\n\n\n"
    "class Pair:\n\tdef __init__(self, a, b):\n\t\tself.a, self.b = a, b\n\n"
    "for i in range(10):\n    print(f'{i:>4} {add(i, i)!r}', end='\\n\\n')\n"
)
REPEATS = "aaaaaaaaaaaaaaa aaaa aaaaaaa ababababab abab!!!!!!!!!!!!!!!!      \n\n\n\n   aabaabaab 111111111 " * 3
TEXTS = {"English": ENGLISH, "Unicode": UNICODE, "code": CODE, "repeats": REPEATS}

SMALL_TEXTS = st.text("aab c'st1!\n\u00e9", max_size=60)  # few letters, so that pairs repeat and tie
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LIKELY_WORDS_LIST = split_words("".join(TEXTS.values()))
LIKELY_WORDS = st.lists(st.sampled_from(LIKELY_WORDS_LIST), max_size=20).map("".join)
_OLD_UNICODE = unicodedata.ucd_3_2_0


def is_settled(character):
    """Whether Unicode 3.2 already had a character: some libraries do not know later ones."""
    return _OLD_UNICODE.category(character) not in ("Cn", "Cs")


SETTLED_TEXT = st.text(st.characters().filter(is_settled), max_size=60)


@functools.cache
def trained(vocab_size=500):
    """A tokenizer trained on all the texts."""
    return BytePairTokenizer.train("".join(TEXTS.values()), vocab_size)


def naive_merges(text, count, min_count):
    """Algorithm 1 of Sennrich et al. as they write it: for each merge, count all pairs of all words again."""
    words = [[bytes([byte]) for byte in word.encode()] for word in split_words(text)]
    rank = {bytes([byte]): place for place, byte in enumerate(BYTE_ORDER)}
    merges = []
    while len(merges) < count:
        pairs = collections.Counter(pair for word in words for pair in itertools.pairwise(word))
        if not pairs or max(pairs.values()) < min_count:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], rank[pair[0]], rank[pair[1]]))
        words = [naive_merge(word, best) for word in words]
        rank[best[0] + best[1]] = len(rank)
        merges.append(best)
    return merges


def naive_merge(tokens, pair):
    """A list of tokens with every `pair` joined, from left to right."""
    joined, place = [], 0
    while place < len(tokens):
        found = tuple(tokens[place : place + 2]) == pair
        joined.append(tokens[place] + tokens[place + 1] if found else tokens[place])
        place += 2 if found else 1
    return joined


def naive_tokens(text, merges):
    """The tokens of a text as bytes: apply each merge in turn to each word."""
    tokens = []
    for word in split_words(text):
        word = [bytes([byte]) for byte in word.encode()]
        for merge in merges:
            word = naive_merge(word, merge)
        tokens += word
    return tokens


def token_bytes(tokenizer, ids):
    """The bytes of each token."""
    return [tokenizer.decode_bytes([i]) for i in ids]
