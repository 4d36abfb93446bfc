def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    uses = {"x": [], "a": [], "c": [], "memory": []}

    def collect(name):
        total = np.zeros_like(uses[name][0])
        for gradient in uses[name]:
            total += gradient
        return total

    at_sum = back_norm_3(dy)
    uses["c"] += [at_sum, back_feed_forward(at_sum)]
    at_sum = back_norm_2(collect("c"))
    for name, gradient in zip(("a", "memory", "memory"), back_cross(at_sum), strict=True):
        uses[name].append(gradient)
    uses["a"].append(at_sum)
    at_sum = back_norm_1(collect("a"))
    uses["x"] += [at_sum, *back_self(at_sum)]
    return collect("x"), collect("memory")


def decoder_backward(dy, backs):
    parts = []
    n = len(backs) - 1
    while n >= 0:
        dy, part = backs[n](dy)
        parts.append(part)
        n -= 1
    return dy, sum(parts)
