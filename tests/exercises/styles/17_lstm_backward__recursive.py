def lstm_backward(dy, cache):
    """Each step calls itself for the step before, and all matrices get their gradients at the end, at once."""
    x, W_x, W_y, steps = cache

    def back(t, dsaid, dcell):
        if t < 0:
            return []
        read, write, forget, new, cell, _, cell_before = steps[t]
        total = dsaid + dy[:, t]
        inner = dcell + total * read / np.cosh(cell) ** 2
        blocks = (total * np.tanh(cell), inner * new, inner * cell_before, inner * write)
        slopes = (read - read**2, write - write**2, forget - forget**2, (1 - new) * (1 + new))
        dsums = np.hstack([block * slope for block, slope in zip(blocks, slopes)])
        return [*back(t - 1, dsums @ W_y.T, inner * forget), dsums]

    nothing = np.zeros_like(dy[:, 0])
    dsums = np.stack(back(len(steps) - 1, nothing, nothing), axis=1)  # (B, T, 4 width)
    said = np.stack([step[5] for step in steps], axis=1)
    flat = dsums.reshape(-1, dsums.shape[-1])
    return (
        dsums @ W_x.T,
        x.reshape(len(flat), -1).T @ flat,
        said.reshape(len(flat), -1).T @ flat,
        flat.sum(axis=0),
    )
