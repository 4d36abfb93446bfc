def clip(gradients, c):
    squares = 0.0
    for g in gradients:
        for entry in g.flat:
            squares += entry * entry
    length = math.sqrt(squares)
    return [g * c / length if length > c else g for g in gradients]
