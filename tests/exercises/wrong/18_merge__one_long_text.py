# pairs_of: pairs cross the ends of words
import itertools


def most_frequent_pair(words, counts):
    total = {}
    for i, (ids, count) in enumerate(zip(words, counts)):
        row = [*ids, *(words[i + 1][:1] if i + 1 < len(words) else [])]
        for pair in itertools.pairwise(row):
            total[pair] = total.get(pair, 0) + count
    return sorted(total, key=lambda pair: (-total[pair], pair))[0]
