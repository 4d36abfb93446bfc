def most_frequent_pair(words, counts):
    total = {}
    for ids, count in zip(words, counts, strict=True):
        for place in range(len(ids) - 1):
            pair = ids[place], ids[place + 1]
            total[pair] = total.get(pair, 0) + count
    return min(total, key=lambda pair: (-total[pair], pair))


def merge_pair(ids, pair, new):
    left, right = pair
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] == left and ids[i + 1] == right:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged
