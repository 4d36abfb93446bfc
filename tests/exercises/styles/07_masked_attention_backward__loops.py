def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b in range(len(q)):
        for t in range(q.shape[1]):
            keys = [s for s in range(k.shape[1]) if allowed[b, t, s]]
            if not keys:
                continue
            e = [math.exp(sum(q[b, t] * k[b, s]) / math.sqrt(q.shape[2])) for s in keys]
            p = [x / sum(e) for x in e]
            dp = [sum(dy[b, t] * v[b, s]) for s in keys]
            mean = sum(x * y for x, y in zip(p, dp, strict=True))
            for s, weight, cost in zip(keys, p, dp, strict=True):
                ds = weight * (cost - mean) / math.sqrt(q.shape[2])
                dq[b, t] += ds * k[b, s]
                dk[b, s] += ds * q[b, t]
                dv[b, s] += weight * dy[b, t]
    return dq, dk, dv
