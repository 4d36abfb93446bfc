def block_backward(dy, cache):
    cache_of_attention, cache_of_feed_forward = cache
    back_norm, gate, value, weights = cache_of_feed_forward
    dr = dy @ weights["W_down"].T
    dvalue = dr * silu(gate)
    dgate = dr * value * silu_slope(gate)
    dnormed = dgate @ weights["W_gate"].T + dvalue @ weights["W_value"].T
    dmiddle = dy + back_norm(dnormed)

    back_norm, back_attention, group, angles, weights = cache_of_attention
    D = 2 * angles.shape[-1]
    do = heads(dmiddle @ weights["W_o"].T, D)
    dq, dk, dv = back_attention(do)
    dk, dv = sum_groups(dk, group), sum_groups(dv, group)
    dq, dk = turn(dq, -angles), turn(dk, -angles)
    dnormed = side_by_side(dq) @ weights["W_q"].T
    dnormed = dnormed + side_by_side(dk) @ weights["W_k"].T
    dnormed = dnormed + side_by_side(dv) @ weights["W_v"].T
    dx = dmiddle + back_norm(dnormed)
    return dx, dmiddle


def sum_groups(dcopies, group):
    B, H, T, D = dcopies.shape
    return dcopies.reshape(B, H // group, group, T, D).sum(axis=2)
