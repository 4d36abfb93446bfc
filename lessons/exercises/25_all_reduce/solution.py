def share_gradient(gradients, tokens):
    everything = all_reduce(tokens)
    shares = [g * n / whole for g, n, whole in zip(gradients, tokens, everything, strict=True)]
    return all_reduce(shares)
