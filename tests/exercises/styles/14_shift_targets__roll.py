def shift_targets(answer):
    """The input is what is to be said, one place to the right; so short rows read an eos, where nobody looks."""
    wide = np.pad(answer, ((0, 0), (0, 1)))
    first_gap = (wide == PAD) & (np.cumsum(wide == PAD, axis=1) == 1)
    target_out = np.where(first_gap, EOS, wide)
    target_in = np.roll(target_out, 1, axis=1)
    target_in[:, 0] = BOS
    return target_in, target_out
