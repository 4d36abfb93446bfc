# turn: it turns the other way
def turn(k, C):
    R = np.zeros((C, C))
    for i in range(C // 2):
        w = k / 10000 ** (2 * i / C)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return R
