# shift_head: position 0 attends to the last position
def shift_head(letters, n):
    nothing = np.zeros((letters, n))
    return np.vstack([nothing, 40 * np.roll(np.eye(n), -1, axis=1)]), np.vstack([nothing, np.eye(n)])
