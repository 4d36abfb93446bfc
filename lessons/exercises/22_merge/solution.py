def merge_states(left, right):
    m_left, total_left, o_left = left
    m_right, total_right, o_right = right
    m = np.maximum(m_left, m_right)
    from_left = np.exp(m_left - m) * total_left
    from_right = np.exp(m_right - m) * total_right
    total = from_left + from_right
    share = (from_left / total)[..., None]
    return m, total, share * o_left + (1 - share) * o_right
