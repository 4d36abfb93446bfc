# shift_targets: IndexError: list index out of range in line
def shift_targets(answer):
    rows = [[token for token in row if token != PAD] for row in answer.tolist()]
    width = answer.shape[1] + 1
    out = [row + [EOS if row[-1] else PAD] + [PAD] * (width - 1 - len(row)) for row in rows]
    return np.array([[BOS] + row[:-1] for row in out]), np.array(out)
