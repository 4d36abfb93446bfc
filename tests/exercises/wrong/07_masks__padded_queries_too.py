# target_mask: queries at padding may not look, either
def target_mask(ids, pad=0):
    real = ids != pad
    return (np.tri(ids.shape[1], dtype=bool) & real[:, None, :] & real[:, :, None])[:, None]
