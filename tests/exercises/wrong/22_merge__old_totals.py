# merge: the totals are brought to one scale, but the shares of o are those of the old totals
def merge(left, right):
    (m_1, total_1, o_1), (m_2, total_2, o_2) = left, right
    m = np.where(m_1 > m_2, m_1, m_2)
    total = total_1 * np.exp(m_1 - m) + total_2 * np.exp(m_2 - m)
    o = (total_1[..., None] * o_1 + total_2[..., None] * o_2) / (total_1 + total_2)[..., None]
    return m, total, o
