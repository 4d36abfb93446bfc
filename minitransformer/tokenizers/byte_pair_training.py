"""Learning which byte pairs to merge (Sennrich, Haddow and Birch 2016, section 3.2 and algorithm 1).

    repeat   count every pair of neighboring tokens inside the words
             join the most frequent pair into a new token, wherever it stands

Written like this, every merge would read all words again. Here every distinct word is stored once, and each pair keeps
its count and its places. A merge touches only the places of its own pair and corrects the counts of its neighbors.

    ids        l o w _ l o w e r _        END after each word, DEAD where a token was merged into the one before it
    weights    5 5 5 . 2 2 2 2 2 .        how often the word occurs in the text
    places     (l, o): [0, 4] ...         where a pair begins; outdated places are skipped
    heap       (-7, (l, o)) ...           the most frequent pair on top; outdated counts are corrected there

Of equally frequent pairs, the one with the smaller ids is merged: first the left token's id decides, then the right
one's. So the same text always gives the same merges, and they are those of the library `tokenizers`.
"""

import collections
import heapq
from collections.abc import Mapping, Sequence

from minitransformer.tokenizers.words import batches_of_words, progress_bar

END, DEAD = -1, -2
Pair = tuple[int, int]


def learn_merges(text: str, id_of_byte: Sequence[int], first_id: int, vocab_size: int, min_count: int) -> list[Pair]:
    """The pairs of ids to merge, in order, until there are `vocab_size` ids or no pair is left.

    `id_of_byte` gives the id of each of the 256 bytes, and the first merge creates the id `first_id`. A pair must occur
    at least `min_count` times.
    """
    words: collections.Counter[str] = collections.Counter()
    for batch in batches_of_words(text, "words"):
        words.update(batch)
    corpus = _Corpus(words, id_of_byte)
    merges = []
    with progress_bar(text, total=vocab_size - first_id, desc="merges", unit="merge") as bar:
        for new in range(first_id, vocab_size):
            pair, count = corpus.most_frequent_pair()
            if pair is None or count < min_count:
                break
            corpus.merge(pair, new)
            merges.append(pair)
            bar.update()
    return merges


class _Corpus:
    """All distinct words one after another, with the counts and places of their pairs."""

    def __init__(self, words: Mapping[str, int], id_of_byte: Sequence[int]):
        self.ids: list[int] = []
        self.weights: list[int] = []
        for word, count in words.items():
            data = word.encode()
            self.ids += [id_of_byte[byte] for byte in data]
            self.ids.append(END)
            self.weights += [count] * (len(data) + 1)
        self.next = list(range(1, len(self.ids) + 1))
        self.previous = list(range(-1, len(self.ids) - 1))  # of the first token: -1, the END of the last word
        self.counts: dict[Pair, int] = collections.defaultdict(int)
        self.places: dict[Pair, list[int]] = collections.defaultdict(list)
        for place in range(len(self.ids) - 1):
            pair = self.ids[place], self.ids[place + 1]
            if END not in pair:
                self.counts[pair] += self.weights[place]
                self.places[pair].append(place)
        self.heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.heap)

    def most_frequent_pair(self) -> tuple[Pair | None, int]:
        """The pair to merge next and its count; None and 0 if no two tokens are neighbors any more."""
        while self.heap:
            negative_count, pair = heapq.heappop(self.heap)
            count = self.counts[pair]
            if count == -negative_count:
                return pair, count
            if count:  # it has fallen since it was pushed
                heapq.heappush(self.heap, (-count, pair))
        return None, 0

    def merge(self, pair: Pair, new: int) -> None:
        """Join `pair` into the token `new` everywhere, from left to right: in "aaa" the first two."""
        ids, following = self.ids, self.next
        left_id, right_id = pair
        changed: set[Pair] = set()
        for place in self.places.pop(pair):  # in ascending order, because every merge goes from left to right
            right = following[place]
            if ids[place] == left_id and ids[right] == right_id:
                self._join(place, right, new, changed)
        for changed_pair in changed:
            heapq.heappush(self.heap, (-self.counts[changed_pair], changed_pair))

    def _join(self, left: int, right: int, new: int, changed: set[Pair]) -> None:
        """Join the tokens at `left` and `right`, and correct the counts of the pairs with their neighbors."""
        ids, counts, places = self.ids, self.counts, self.places
        before, after, weight = self.previous[left], self.next[right], self.weights[left]
        if ids[before] != END:
            counts[ids[before], ids[left]] -= weight
            pair = ids[before], new
            counts[pair] += weight
            places[pair].append(before)
            changed.add(pair)
        if ids[after] != END:
            counts[ids[right], ids[after]] -= weight
            pair = new, ids[after]
            counts[pair] += weight
            places[pair].append(left)
            changed.add(pair)
        ids[left], ids[right] = new, DEAD
        self.next[left], self.previous[after] = after, left
