# --- right: arrays
def most_frequent_pair(words, counts):
    """All pairs as rows of one array, with the weight of their word."""
    pairs = np.concatenate([np.stack([ids[:-1], ids[1:]], axis=1).astype(int).reshape(-1, 2) for ids in words])
    weights = np.repeat(counts, [len(ids) - 1 for ids in words])
    unlike, place = np.unique(pairs, axis=0, return_inverse=True)  # sorted
    return unlike[np.argmax(np.bincount(place.reshape(-1), weights))]


def merge_pair(ids, pair, new):
    """Mark where a pair begins; of neighbouring marks keep every second one."""
    ids = np.array(ids)
    begins = np.append((ids[:-1] == pair[0]) & (ids[1:] == pair[1]), False)
    for i in range(1, len(ids)):
        begins[i] &= not begins[i - 1]
    gone = np.append(False, begins[:-1])
    return np.where(begins, new, ids)[~gone].tolist()
