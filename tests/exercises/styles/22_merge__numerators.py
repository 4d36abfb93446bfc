def merge(left, right):
    """The numerators are added, and divided by the new total."""
    m = np.where(left[0] > right[0], left[0], right[0])
    total, top = 0, 0
    for largest, part, answer in (left, right):
        part = part * np.exp(largest - m)
        total = total + part
        top = top + part[..., None] * answer
    return m, total, top / total[..., None]
