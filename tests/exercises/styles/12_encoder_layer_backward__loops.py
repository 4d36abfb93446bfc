def encoder_layer_backward(dy, cache):
    gradient = dy
    passed = []
    for back_norm, back_piece in ((cache[3], cache[2]), (cache[1], cache[0])):
        through_norm = back_norm(gradient)
        through_piece = back_piece(through_norm)
        gradient = through_norm.copy()
        for part in through_piece if isinstance(through_piece, tuple) else (through_piece,):
            gradient += part
        passed.append(gradient)
    return passed[1], passed[0]
