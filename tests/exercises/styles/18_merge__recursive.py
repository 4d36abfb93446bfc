import collections
import itertools


def most_frequent_pair(words, counts):
    """A counter, and a sort of what it has."""
    total = collections.Counter()
    for ids, count in zip(words, counts):
        total.update({pair: count * n for pair, n in collections.Counter(itertools.pairwise(ids)).items()})
    ((pair, _), *_) = sorted(sorted(total.items()), key=lambda item: item[1], reverse=True)
    return pair


def merge(ids, pair, new):
    """The first token or pair, and then the rest."""
    if len(ids) < 2:
        return list(ids)
    if tuple(ids[:2]) == tuple(pair):
        return [new, *merge(ids[2:], pair, new)]
    return [ids[0], *merge(ids[1:], pair, new)]
