# --- right: logarithms
def merge(left, right):
    """The shares are a softmax over the logarithms of the two denominators."""
    logs = np.stack([left[0] + np.log(left[1]), right[0] + np.log(right[1])])
    both = np.logaddexp(*logs)
    m = np.maximum(left[0], right[0])
    answer = np.einsum("xbt,xbtd->btd", np.exp(logs - both), np.stack([left[2], right[2]]))
    return m, np.exp(both - m), answer


# --- wrong: mean_by_halves
# merge: total: the totals are added as they are
def merge(left, right):
    (m_1, total_1, o_1), (m_2, total_2, o_2) = left, right
    return np.maximum(m_1, m_2), total_1 + total_2, (o_1 + o_2) / 2
