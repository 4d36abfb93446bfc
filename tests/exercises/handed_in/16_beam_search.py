# --- right: arrays
def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    ids, totals = np.zeros((1, 0), dtype=int), np.zeros(1)
    answers, scores = [], []
    for length in range(1, max_new_tokens + 1):
        every = totals[:, None] + np.stack([log_p(tuple(row)) for row in ids.tolist()])  # (living, V)
        order = np.argsort(-every, axis=None)
        rows, tokens = np.unravel_index(order, every.shape)
        extended = np.column_stack([ids[rows], tokens])
        ends = tokens == EOS
        now = np.flatnonzero(ends[:beam])
        on = np.flatnonzero(~ends)[:beam]
        for i in [*now, *(on if length == max_new_tokens else [])]:
            answers.append(extended[i])
            scores.append(every.flat[order[i]] / ((5 + length) / 6) ** alpha)
        ids, totals = extended[on], every.flat[order[on]]
    return np.max(scores), answers[int(np.argmax(scores))]
