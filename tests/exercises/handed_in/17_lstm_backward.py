# --- right: loops
def lstm_backward(dy, cache):
    """One unit of one step of one sequence at a time."""
    x, W_x, W_y, steps = cache
    B, T, width = dy.shape
    dx, dW_x, dW_y, db = (np.zeros_like(array) for array in (x, W_x, W_y, W_x[0]))
    for n in range(B):
        dsaid, dcell = np.zeros_like(dy[n, 0]), np.zeros_like(dy[n, 0])
        for t in range(T - 1, -1, -1):
            read, write, forget, new, cell, said_before, cell_before = (array[n] for array in steps[t])
            dsums = np.zeros_like(W_x[0])
            for d in range(width):
                total = dsaid[d] + dy[n, t, d]
                dcell[d] += total * read[d] * (1 - np.tanh(cell[d]) ** 2)
                dsums[d] = total * np.tanh(cell[d]) * read[d] * (1 - read[d])
                dsums[width + d] = dcell[d] * new[d] * write[d] * (1 - write[d])
                dsums[2 * width + d] = dcell[d] * cell_before[d] * forget[d] * (1 - forget[d])
                dsums[3 * width + d] = dcell[d] * write[d] * (1 - new[d] ** 2)
                dcell[d] *= forget[d]
            dx[n, t] = W_x @ dsums
            dsaid = W_y @ dsums
            dW_x += np.outer(x[n, t], dsums)
            dW_y += np.outer(said_before, dsums)
            db += dsums
    return dx, dW_x, dW_y, db
