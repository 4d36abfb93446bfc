# --- right: arrays
def most_frequent_pair(words, counts):
    """All pairs as rows of one array, with the weight of their word."""
    pairs = np.concatenate([np.stack([ids[:-1], ids[1:]], axis=1).astype(int).reshape(-1, 2) for ids in words])
    weights = np.repeat(counts, [len(ids) - 1 for ids in words])
    unlike, place = np.unique(pairs, axis=0, return_inverse=True)  # sorted
    return unlike[np.argmax(np.bincount(place.reshape(-1), weights))]


def merge(ids, pair, new):
    """Mark where a pair begins; of neighbouring marks keep every second one."""
    ids = np.array(ids)
    begins = np.append((ids[:-1] == pair[0]) & (ids[1:] == pair[1]), False)
    for i in range(1, len(ids)):
        begins[i] &= not begins[i - 1]
    gone = np.append(False, begins[:-1])
    return np.where(begins, new, ids)[~gone].tolist()


# --- wrong: counter_and_replace
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


# --- wrong: one_long_text
# pairs_of: pairs cross the ends of words
import itertools


def most_frequent_pair(words, counts):
    total = {}
    for i, (ids, count) in enumerate(zip(words, counts)):
        row = [*ids, *(words[i + 1][:1] if i + 1 < len(words) else [])]
        for pair in itertools.pairwise(row):
            total[pair] = total.get(pair, 0) + count
    return sorted(total, key=lambda pair: (-total[pair], pair))[0]
