def price(log_p, targets, texts):
    counted = targets != PAD
    nats = -log_p[counted]
    size = np.array([len(text.encode()) for text in texts])[targets]
    bits = nats.sum() / np.log(2) / size.sum()
    return bits, np.exp(nats.mean())
