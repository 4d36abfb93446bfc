# --- right: whole
def row_split(x, W, b):
    """Share the bias, and multiply the parts put together."""
    y = np.concatenate(x, axis=1) @ np.concatenate(W) + b
    return np.stack([y] * len(x))


def row_split_backward(dy, x, W):
    ones = np.ones((len(W), 1, len(dy)), dy.dtype)
    return dy @ np.stack(W).swapaxes(-1, -2), np.stack(x).swapaxes(-1, -2) @ dy, (ones @ dy)[:, 0]
