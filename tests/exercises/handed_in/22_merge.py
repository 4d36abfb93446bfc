# --- wrong: mean_by_halves
# merge_states: total: the totals are added as they are
def merge_states(left, right):
    (m_1, total_1, o_1), (m_2, total_2, o_2) = left, right
    return np.maximum(m_1, m_2), total_1 + total_2, (o_1 + o_2) / 2
