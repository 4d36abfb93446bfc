# --- right: whole
def row_split(x, W, b):
    """Share the bias, and multiply the parts put together."""
    y = np.concatenate(x, axis=1) @ np.concatenate(W) + b
    return np.stack([y] * len(x))


def row_split_backward(dy, x, W):
    ones = np.ones((len(W), 1, len(dy)), dy.dtype)
    return dy @ np.stack(W).swapaxes(-1, -2), np.stack(x).swapaxes(-1, -2) @ dy, (ones @ dy)[:, 0]


# --- wrong: adds_dy
# row_split: the parts are averaged
# row_split_backward: dy is added up over the machines
def row_split(x, W, b):
    parts = [features @ rows for features, rows in zip(x, W, strict=True)]
    return [np.mean(parts, axis=0) + b for _ in x]


def row_split_backward(dy, x, W):
    dy = all_reduce([dy for _ in x])[0]
    return [dy @ rows.T for rows in W], [features.T @ dy for features in x], [dy.sum(0) for _ in W]


# --- wrong: bias_on_each
# row_split: every machine adds the bias to its part
# row_split_backward: db is divided by the number of machines
def row_split(x, W, b):
    y = sum(features @ rows + b for features, rows in zip(x, W, strict=True))
    return [y.copy() for _ in x]


def row_split_backward(dy, x, W):
    return (
        [np.einsum("nc,fc->nf", dy, rows) for rows in W],
        [np.einsum("nf,nc->fc", features, dy) for features in x],
        [np.einsum("nc->c", dy) / len(W) for _ in W],
    )
