def two_heads(letters, T):
    C = letters + T + letters
    letter, place, heard = np.eye(C)[:, :letters], np.eye(C)[:, letters : letters + T], np.eye(C)[:, letters + T :]
    before = 30 * math.sqrt(T) * place @ np.eye(T, k=-1)
    found = heard.copy()
    found[letters] = -1.0
    return (before, place, letter @ heard.T), (40 * math.sqrt(letters) * letter, found)
