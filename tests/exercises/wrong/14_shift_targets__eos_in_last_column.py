# shift_targets: eos is at the end of the row, after the padding
def shift_targets(answer):
    B, L = answer.shape
    target_in = np.hstack([np.full((B, 1), BOS), answer])
    target_out = np.hstack([answer, np.full((B, 1), EOS)])
    return target_in, target_out
