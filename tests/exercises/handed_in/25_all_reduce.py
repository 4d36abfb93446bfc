# --- right: array
def share_gradient(gradients, tokens):
    g = np.average(np.stack(gradients), axis=0, weights=np.asarray(tokens, gradients[0].dtype))
    return np.broadcast_to(g, (len(tokens), *g.shape))


# --- wrong: sum_of_tokens
# share_gradient: each gradient is multiplied by its tokens, but the sum is never divided
def share_gradient(gradients, tokens):
    return all_reduce([n * g for n, g in zip(tokens, gradients, strict=True)])
