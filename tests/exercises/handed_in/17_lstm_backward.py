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


# --- wrong: cell_of_the_output_alone
# lstm_backward: the cell hears its own step only
def lstm_backward(dy, cache):
    x, W_x, W_y, steps = cache
    dsums, back = [], 0
    for t in range(dy.shape[1] - 1, -1, -1):
        r, w, f, n, cell, _, old = steps[t]
        d = dy[:, t] + back
        dcell = d * r * (1 - np.tanh(cell) ** 2)
        parts = [d * np.tanh(cell) * (r - r * r), dcell * n * (w - w * w), dcell * old * (f - f * f)]
        dsums.insert(0, np.concatenate([*parts, dcell * w * (1 - n * n)], axis=1))
        back = dsums[0] @ W_y.T
    dsums, said = np.stack(dsums, axis=1), np.stack([step[5] for step in steps], axis=1)
    return (
        dsums @ W_x.T,
        np.einsum("btc,btf->cf", x, dsums),
        np.einsum("btc,btf->cf", said, dsums),
        dsums.sum(axis=(0, 1)),
    )


# --- wrong: gates_are_numbers
# lstm_backward: the sigmoids of the gates have no derivative
def lstm_backward(dy, cache):
    x, W_x, W_y, steps = cache
    dx, dW_x, dW_y, db = np.zeros_like(x), 0, 0, 0
    later, memory = 0, 0
    for t in range(dy.shape[1])[::-1]:
        r, w, f, n, cell, heard, old = steps[t]
        d = dy[:, t] + later
        memory = memory + d * r * (1 - np.tanh(cell) ** 2)
        dsums = np.hstack([d * np.tanh(cell), memory * n, memory * old, memory * w * (1 - n * n)])
        dx[:, t] = dsums @ W_x.T
        dW_x, dW_y, db = dW_x + x[:, t].T @ dsums, dW_y + heard.T @ dsums, db + dsums.sum(axis=0)
        later, memory = dsums @ W_y.T, memory * f
    return dx, dW_x, dW_y, db
