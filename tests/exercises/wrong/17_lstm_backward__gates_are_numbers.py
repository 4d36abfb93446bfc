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
