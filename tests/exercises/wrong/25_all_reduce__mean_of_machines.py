# share_gradient: the gradients are averaged
def share_gradient(gradients, tokens):
    return [np.mean(gradients, axis=0) for _ in gradients]
