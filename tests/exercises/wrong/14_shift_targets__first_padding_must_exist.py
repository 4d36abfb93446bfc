# shift_targets: eos is at the first padding, and rows without padding have none
def shift_targets(answer):
    B, L = answer.shape
    target_in = np.concatenate([np.full((B, 1), BOS), answer], axis=1)
    target_out = np.concatenate([answer, np.zeros((B, 1), int)], axis=1)
    for row, out in zip(answer, target_out):
        out[np.argmax(row == PAD)] = EOS
    return target_in, target_out
