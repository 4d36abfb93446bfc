# price: each text counts alike
def price(log_p, targets, texts):
    bits, everything, count = [], 0, 0
    for row, ids in zip(log_p, targets):
        real = [(x, w) for x, w in zip(row, ids) if w != PAD]
        nats = -sum(x for x, _ in real)
        bits.append(nats / np.log(2) / max(len("".join(texts[w] for _, w in real).encode()), 1))
        everything, count = everything + nats, count + len(real)
    return sum(bits) / len(bits), np.exp(everything / count)
