# --- right: loops
def shift_targets(answer):
    target_in, target_out = [], []
    for row in answer.tolist():
        letters = [i for i in row if i != PAD]
        padding = [PAD] * (len(row) - len(letters))
        target_in.append([BOS, *letters, *padding])
        target_out.append([*letters, EOS, *padding])
    return np.array(target_in), np.array(target_out)


# --- wrong: fractions
# shift_targets: target_in has the dtype float64, but should hold integers
def shift_targets(answer):
    B, L = answer.shape
    target_in, target_out = np.zeros((B, L + 1)), np.zeros((B, L + 1))
    target_in[:, 0], target_in[:, 1:] = BOS, answer
    target_out[:, :-1] = answer
    target_out[np.arange(B), (answer != PAD).sum(axis=1)] = EOS
    return target_in, target_out


# --- wrong: needs_a_letter
# shift_targets: IndexError: list index out of range in line
def shift_targets(answer):
    rows = [[token for token in row if token != PAD] for row in answer.tolist()]
    width = answer.shape[1] + 1
    out = [row + [EOS if row[-1] else PAD] + [PAD] * (width - 1 - len(row)) for row in rows]
    return np.array([[BOS] + row[:-1] for row in out]), np.array(out)
