# price: characters are counted, not bytes
def price(log_p, targets, texts):
    real = targets > 0
    text = "".join(texts[w] for w in targets[real])
    return -log_p[real].sum() / np.log(2) / len(text), np.exp(-log_p[real].mean())
