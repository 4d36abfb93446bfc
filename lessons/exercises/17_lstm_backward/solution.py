def lstm_backward(dy, cache):
    x, W_x, W_y, steps = cache
    dx, dW_x, dW_y, db = np.zeros_like(x), np.zeros_like(W_x), np.zeros_like(W_y), np.zeros_like(W_x[0])
    dsaid = dcell = np.zeros_like(steps[0][4])
    for t in reversed(range(len(steps))):
        read, write, forget, new, cell, said_before, cell_before = steps[t]
        squashed = np.tanh(cell)
        dsaid = dsaid + dy[:, t]
        dcell = dcell + dsaid * read * (1 - squashed**2)
        dread = dsaid * squashed * read * (1 - read)
        dwrite = dcell * new * write * (1 - write)
        dforget = dcell * cell_before * forget * (1 - forget)
        dnew = dcell * write * (1 - new**2)
        dsums = np.concatenate([dread, dwrite, dforget, dnew], axis=-1)
        dx[:, t] = dsums @ W_x.T
        dW_x = dW_x + x[:, t].T @ dsums
        dW_y = dW_y + said_before.T @ dsums
        db = db + dsums.sum(axis=0)
        dsaid = dsums @ W_y.T
        dcell = dcell * forget
    return dx, dW_x, dW_y, db
