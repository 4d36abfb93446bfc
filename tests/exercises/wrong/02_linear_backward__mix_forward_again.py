# mix_backward: dx goes back through W as it is
def mix_backward(dy, cache):
    x, W = cache
    return dy @ W, np.einsum("btc,btd->cd", x, dy)
