# pairs_of: it is the first that was seen
# merge_all: a whole run becomes one token
import collections


def most_frequent_pair(words, counts):
    total = collections.Counter()
    for ids, count in zip(words, counts):
        for i in range(1, len(ids)):
            total[ids[i - 1], ids[i]] += count
    return total.most_common(1)[0][0]


def merge(ids, pair, new):
    out = []
    for token in ids:
        if out and (out[-1], token) == tuple(pair):
            out[-1] = new
        elif out and out[-1] == new and token == pair[1]:
            continue
        else:
            out.append(token)
    return out
