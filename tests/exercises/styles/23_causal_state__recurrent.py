def causal_states(k, v):
    states = [k[:, 0, :, None] * v[:, 0, None, :]]
    for t in range(1, k.shape[1]):
        states.append(states[-1] + k[:, t, :, None] @ v[:, t, None, :])
    return np.stack(states, axis=1)


def attend_backward(do, cache):
    q, k, v = cache
    dq, dk, dv, states = np.empty_like(q), np.empty_like(k), np.empty_like(v), causal_states(k, v)
    dstate = np.zeros_like(states[:, 0])
    for t in range(q.shape[1] - 1, -1, -1):
        dstate = dstate + q[:, t, :, None] * do[:, t, None, :]
        dq[:, t] = (states[:, t] @ do[:, t, :, None])[..., 0]
        dk[:, t] = (dstate @ v[:, t, :, None])[..., 0]
        dv[:, t] = (k[:, t, None, :] @ dstate)[:, 0]
    return [dq, dk, dv]
