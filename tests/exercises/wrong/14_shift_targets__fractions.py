# shift_targets: target_in has the dtype float64, but should hold integers
def shift_targets(answer):
    B, L = answer.shape
    target_in, target_out = np.zeros((B, L + 1)), np.zeros((B, L + 1))
    target_in[:, 0], target_in[:, 1:] = BOS, answer
    target_out[:, :-1] = answer
    target_out[np.arange(B), (answer != PAD).sum(axis=1)] = EOS
    return target_in, target_out
