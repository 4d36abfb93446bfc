# decoder_backward: the layers come in the order of the forward
def decoder_backward(dy, backs):
    total = 0
    for back in backs:
        dy, dmemory = back(dy)
        total = total + dmemory
    return dy, total
