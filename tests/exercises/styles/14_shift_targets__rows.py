def shift_targets(answer):
    L = answer.shape[1]
    target_in, target_out = [], []
    for row in answer.tolist():
        said = [token for token in row if token != PAD]
        rest = [PAD] * (L - len(said))
        target_in.append([BOS, *said, *rest])
        target_out.append([*said, EOS, *rest])
    return np.array(target_in), np.array(target_out)
