# continue_word: the scores of layer 2 are too small for the softmax
def two_heads(letters, T):
    one = np.eye(letters + T + letters)
    letter, place, empty = np.split(one, [letters, letters + T], axis=1)
    shifted = 500 * np.roll(place, -1, axis=1)
    shifted[letters] = 0.0
    key = empty - place[:, [0]]
    return (shifted, place, letter @ empty.T), (math.sqrt(letters) * letter, key)
