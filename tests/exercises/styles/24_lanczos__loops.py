def lanczos(product, start, steps):
    directions, diagonal, beside = [], [], []
    u = start / math.sqrt(sum(entry * entry for entry in start))
    for _ in range(steps):
        directions.append(u)
        left = product(u)
        diagonal.append(sum(u * left))
        for _ in range(2):
            for direction in directions:  # one after another: modified Gram-Schmidt
                left = left - sum(direction * left) * direction
        beside.append(math.sqrt(sum(left * left)))
        u = left / beside[-1]
    dtype = start.dtype
    return np.array(diagonal, dtype), np.array(beside, dtype), np.array(directions, dtype)
