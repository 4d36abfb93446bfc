def shift_targets(answer):
    B = len(answer)
    target_in = np.concatenate([np.full((B, 1), BOS), answer], axis=1)
    target_out = np.concatenate([answer, np.full((B, 1), PAD)], axis=1)
    target_out[np.arange(B), (answer != PAD).sum(axis=1)] = EOS
    return target_in, target_out
