# --- right: complex
def sinusoids(length, C):
    turns = np.exp(1j * np.outer(np.arange(length), np.exp(-math.log(10000) * np.arange(0, C, 2) / C)))
    return np.stack([turns.imag, turns.real], axis=-1).reshape(length, C)


def turn(k, C):
    """What the table itself says: the matrix that takes its first C rows to where they go."""
    table = sinusoids(60 * C, C)[: 60 * C]
    behind, ahead = (table[:-k], table[k:]) if k > 0 else (table[-k:], table[: len(table) + k])
    return np.linalg.lstsq(behind, ahead, rcond=None)[0]


# --- wrong: degrees_from_one
# sinusoids: positions are counted from 1
def sinusoids(length, C):
    p = np.arange(1, length + 1)[:, None]
    angle = p / 10000 ** (np.arange(0, C, 2) / C)
    PE = np.empty((length, C))
    PE[:, ::2], PE[:, 1::2] = np.sin(angle), np.cos(angle)
    return PE


# --- wrong: ends_meet
# sinusoids: the frequencies end at 1/10000
def sinusoids(length, C):
    angle = np.arange(length)[:, None] / 10000 ** np.linspace(0, 1, C // 2)
    PE = np.empty((length, C))
    PE[:, ::2], PE[:, 1::2] = np.sin(angle), np.cos(angle)
    return PE


# --- wrong: other_direction
# turn: it turns the other way
def turn(k, C):
    R = np.zeros((C, C))
    for i in range(C // 2):
        w = k / 10000 ** (2 * i / C)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return R
