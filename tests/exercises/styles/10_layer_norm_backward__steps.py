def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    C = dy.shape[-1]
    c = x_hat * sigma
    dx_hat = gamma * dy
    dsigma = -(dx_hat * c).sum(-1, keepdims=True) / sigma**2
    dvariance = dsigma / (2 * sigma)
    dc = dx_hat / sigma + dvariance * 2 * c / C
    dmean = -dc.sum(-1, keepdims=True)
    return dc + dmean / C, (dy * x_hat).reshape(-1, C).sum(0), dy.reshape(-1, C).sum(0)
