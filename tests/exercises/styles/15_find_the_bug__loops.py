def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    B, T, C = dy.shape
    dx, dgamma, dbeta = np.zeros_like(dy), np.zeros(C), np.zeros(C)
    for b in range(B):
        for t in range(T):
            g = [dy[b, t, c] * gamma[c] for c in range(C)]
            mean = sum(g) / C
            along = sum(g[c] * x_hat[b, t, c] for c in range(C)) / C
            for c in range(C):
                dx[b, t, c] = (g[c] - mean - x_hat[b, t, c] * along) / sigma[b, t, 0]
                dgamma[c] += dy[b, t, c] * x_hat[b, t, c]
                dbeta[c] += dy[b, t, c]
    return dx, dgamma, dbeta


def greedy(model, B, max_len):
    said = [[] for _ in range(B)]
    for _ in range(max_len):
        longest = max(len(row) for row in said)
        ids = np.array([[BOS] + row + [PAD] * (longest - len(row)) for row in said])
        logits = model(ids)
        for b, row in enumerate(said):
            if EOS not in row:
                row.append(int(logits[b, len(row)].argmax()))
        if all(EOS in row for row in said):
            break
    longest = max(len(row) for row in said)
    return np.array([row + [PAD] * (longest - len(row)) for row in said])


def masked_loss(logits, targets):
    total, count = 0.0, 0
    for b in range(targets.shape[0]):
        for t in range(targets.shape[1]):
            if targets[b, t] != PAD:
                total += np.log(np.exp(logits[b, t]).sum()) - logits[b, t, targets[b, t]]
                count += 1
    return total / count
