def extend(x, K, V, W, P):
    W_q, W_k, W_v = W
    B, t, D = K.shape
    outputs, keys, values = [], [], []
    for b in range(B):
        here = [x[b, c] + P[t, c] for c in range(x.shape[1])]
        q, k, v = ([sum(h * w for h, w in zip(here, column, strict=True)) for column in M.T] for M in (W_q, W_k, W_v))
        keys.append([*K[b].tolist(), k])
        values.append([*V[b].tolist(), v])
        e = [math.exp(sum(a * c for a, c in zip(q, key, strict=True)) / math.sqrt(D)) for key in keys[b]]
        outputs.append(
            [sum(w * value[i] for w, value in zip(e, values[b], strict=True)) / sum(e) for i in range(len(v))]
        )
    return outputs, keys, values
