# lanczos: nothing is taken out of a product
def lanczos(product, start, steps):
    rows, diagonal, beside = [start / math.sqrt(start @ start)], [], []
    for _ in range(steps):
        image = product(rows[-1])
        diagonal.append(rows[-1] @ image)
        beside.append(math.sqrt(image @ image))
        rows.append(image / beside[-1])
    return np.array(diagonal), np.array(beside), np.array(rows[:-1])
