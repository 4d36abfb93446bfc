# shift_head: each row has one weight near 1, because its best score is far above the others
def shift_head(letters, n):
    before = np.eye(n, k=-1)
    before[0, 0] = 1
    nothing = np.zeros((letters, n))
    return np.vstack([nothing, 4 * before]), np.vstack([nothing, np.eye(n)])
