def price(log_p, targets, texts):
    """The probability of everything as one number, to the power of minus one over what it is divided by."""
    everything = np.where(targets == PAD, 0, log_p).sum()
    text = "".join(texts[w] for w in targets.reshape(-1))
    per_byte = np.exp(-everything / len(text.encode("utf-8")))
    return np.log2(per_byte), np.exp(-everything / np.count_nonzero(targets))
