def price(log_p, targets, texts):
    """One token at a time."""
    bits = nats = size = count = 0
    for n in range(len(targets)):
        for t, w in enumerate(targets[n]):
            if w == PAD:
                continue
            bits -= log_p[n, t] / np.log(2)
            nats -= log_p[n, t]
            size += len(bytes(texts[w], "utf-8"))
            count += 1
    return bits / size, np.e ** (nats / count)
