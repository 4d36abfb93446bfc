def share_gradient(gradients, tokens):
    """First the sum over all tokens, then one division on each machine."""
    sums = all_reduce([g * count for g, count in zip(gradients, tokens, strict=True)])
    return [whole / count for whole, count in zip(sums, all_reduce(tokens), strict=True)]
