# --- right: one_probability
def price(log_p, targets, texts):
    """The probability of everything as one number, to the power of minus one over what it is divided by."""
    everything = np.where(targets == PAD, 0, log_p).sum()
    text = "".join(texts[w] for w in targets.reshape(-1))
    per_byte = np.exp(-everything / len(text.encode("utf-8")))
    return np.log2(per_byte), np.exp(-everything / np.count_nonzero(targets))


# --- wrong: letters
# price: characters are counted, not bytes
def price(log_p, targets, texts):
    real = targets > 0
    text = "".join(texts[w] for w in targets[real])
    return -log_p[real].sum() / np.log(2) / len(text), np.exp(-log_p[real].mean())
