# mix_backward: W is not transposed in dx
def mix_backward(dy, cache):
    x, W = cache
    return dy @ W, np.einsum("btc,btd->cd", x, dy)
