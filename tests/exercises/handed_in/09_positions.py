# --- right: complex
def sinusoids(length, C):
    turns = np.exp(1j * np.outer(np.arange(length), np.exp(-math.log(10000) * np.arange(0, C, 2) / C)))
    return np.stack([turns.imag, turns.real], axis=-1).reshape(length, C)


def turn(k, C):
    """What the table itself says: the matrix that takes its first C rows to where they go."""
    table = sinusoids(60 * C, C)[: 60 * C]
    behind, ahead = (table[:-k], table[k:]) if k > 0 else (table[-k:], table[: len(table) + k])
    return np.linalg.lstsq(behind, ahead, rcond=None)[0]


# --- wrong: other_direction
# turn: it turns the other way
def turn(k, C):
    R = np.zeros((C, C))
    for i in range(C // 2):
        w = k / 10000 ** (2 * i / C)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return R
