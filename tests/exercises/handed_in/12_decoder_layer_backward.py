# --- wrong: same_gradient_for_all
# decoder_backward: every layer gets the same dy
def decoder_backward(dy, backs):
    results = [back(dy) for back in backs]
    return results[0][0], sum(result[1] for result in results)
