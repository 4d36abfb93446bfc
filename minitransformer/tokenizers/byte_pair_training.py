"""Learning which byte pairs to merge (Sennrich, Haddow and Birch 2016, section 3.2 and algorithm 1).

    repeat   count every pair of neighbouring tokens inside the words
             join the most frequent pair into a new token, wherever it stands

As written this reads all words once for each merge. Here every distinct word is laid out once, and each pair knows
its count and its places; a merge touches only the places of its own pair, and corrects the counts of its neighbours.

    ids        l o w _ l o w e r _        END behind each word, DEAD where a token went into the one before it
    weights    5 5 5 . 2 2 2 2 2 .        how often the text has the word
    places     (l, o): [0, 4] ...         where a pair begins; some places are out of date, and are passed over
    heap       (-7, (l, o)) ...           the most frequent pair on top; a count that has fallen is put right there

Of equally frequent pairs the one of the earlier tokens is merged: the smaller ids, first of the left token, then of
the right one. So the same text gives the same merges, and the library `tokenizers` decides in the same way.
"""

import collections
import heapq

from minitransformer.tokenizers.words import batches_of_words, progress_bar

END, DEAD = -1, -2


def learn_merges(text, id_of_byte, first_id, vocab_size, min_count):
    """The pairs of ids to merge, in order, until there are `vocab_size` ids or no pair is left -> list of (id, id).

    `id_of_byte` gives the id of each of the 256 bytes; the first merge makes the id `first_id`. A pair must occur
    `min_count` times or more.
    """
    words = collections.Counter()
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
    """All distinct words one behind the other, with the counts and places of their pairs."""

    def __init__(self, words, id_of_byte):
        self.ids, self.weights = [], []
        for word, count in words.items():
            data = word.encode()
            self.ids += [id_of_byte[byte] for byte in data]
            self.ids.append(END)
            self.weights += [count] * (len(data) + 1)
        self.next = list(range(1, len(self.ids) + 1))
        self.previous = list(range(-1, len(self.ids) - 1))  # of the first token: -1, the END of the last word
        self.counts, self.places = collections.defaultdict(int), collections.defaultdict(list)
        for place in range(len(self.ids) - 1):
            pair = self.ids[place], self.ids[place + 1]
            if END not in pair:
                self.counts[pair] += self.weights[place]
                self.places[pair].append(place)
        self.heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.heap)

    def most_frequent_pair(self):
        """The pair to merge next, and how often it occurs; None and 0 if no two tokens are neighbours any more."""
        while self.heap:
            promised, pair = heapq.heappop(self.heap)
            count = self.counts[pair]
            if count == -promised:
                return pair, count
            if count:  # it has fallen since it was put here
                heapq.heappush(self.heap, (-count, pair))
        return None, 0

    def merge(self, pair, new):
        """Join `pair` into the token `new` wherever it stands, from left to right: in "aaa" the first two."""
        ids, following = self.ids, self.next
        left_id, right_id = pair
        fresh = set()
        for place in self.places.pop(pair):  # they rise, because every merge goes from left to right
            right = following[place]
            if ids[place] == left_id and ids[right] == right_id:
                self._join(place, right, new, fresh)
        for fresh_pair in fresh:
            heapq.heappush(self.heap, (-self.counts[fresh_pair], fresh_pair))

    def _join(self, left, right, new, fresh):
        """Make the tokens at `left` and `right` one, and correct the pairs that they formed with their neighbours."""
        ids, counts, places = self.ids, self.counts, self.places
        before, after, weight = self.previous[left], self.next[right], self.weights[left]
        if ids[before] != END:
            counts[ids[before], ids[left]] -= weight
            pair = ids[before], new
            counts[pair] += weight
            places[pair].append(before)
            fresh.add(pair)
        if ids[after] != END:
            counts[ids[right], ids[after]] -= weight
            pair = new, ids[after]
            counts[pair] += weight
            places[pair].append(left)
            fresh.add(pair)
        ids[left], ids[right] = new, DEAD
        self.next[left], self.previous[after] = after, left
