def shift_targets(answer):
    target_in, target_out = [], []
    for row in answer.tolist():
        letters = [i for i in row if i != PAD]
        padding = [PAD] * (len(row) - len(letters))
        target_in.append([BOS, *letters, *padding])
        target_out.append([*letters, EOS, *padding])
    return np.array(target_in), np.array(target_out)
