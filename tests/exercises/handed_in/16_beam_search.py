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


# --- wrong: all_eos_extensions
# beam_search: every extension that ends in eos is finished, not only those among the first `beam`
def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    def score(item):
        return item[0] / ((5 + len(item[1])) / 6) ** alpha

    living, finished = [(0.0, ())], []
    for _ in range(max_new_tokens):
        extended = [(total + p, (*ids, t)) for total, ids in living for t, p in enumerate(log_p(ids))]
        extended.sort(key=lambda item: -item[0])
        finished += [item for item in extended if item[1][-1] == EOS]
        living = [item for item in extended if item[1][-1] != EOS][:beam]
    best = max(finished + living, key=score)
    return score(best), best[1]


# --- wrong: first_finished_wins
# beam_search: the search stops at the first answer that ends
def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    def score(item):
        return item[0] / ((5 + len(item[1])) / 6) ** alpha

    living, finished = [(0.0, ())], []
    for _ in range(max_new_tokens):
        extended = [(total + p, (*ids, t)) for total, ids in living for t, p in enumerate(log_p(ids))]
        extended.sort(key=lambda item: -item[0])
        finished += [item for item in extended[:beam] if item[1][-1] == EOS]
        living = [item for item in extended if item[1][-1] != EOS][:beam]
        if finished:
            break
    best = max(finished or living, key=score)
    return score(best), best[1]


# --- wrong: living_do_not_count
# beam_search: what still lives at the end does not count
def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    def score(item):
        return item[0] / ((5 + len(item[1])) / 6) ** alpha

    living, finished = [(0.0, ())], []
    for _ in range(max_new_tokens):
        extended = [(total + p, (*ids, t)) for total, ids in living for t, p in enumerate(log_p(ids))]
        extended.sort(key=lambda item: -item[0])
        finished += [item for item in extended[:beam] if item[1][-1] == EOS]
        living = [item for item in extended if item[1][-1] != EOS][:beam]
    best = max(finished or living, key=score)
    return score(best), best[1]


# --- wrong: living_share_the_beam
# beam_search: an answer that has ended takes the place of a living beginning
def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    def score(item):
        return item[0] / ((5 + len(item[1])) / 6) ** alpha

    living, finished = [(0.0, ())], []
    for _ in range(max_new_tokens):
        extended = [(total + p, (*ids, t)) for total, ids in living for t, p in enumerate(log_p(ids))]
        extended.sort(key=lambda item: -item[0])
        finished += [item for item in extended[:beam] if item[1][-1] == EOS]
        living = [item for item in extended[:beam] if item[1][-1] != EOS]
    best = max(finished + living, key=score)
    return score(best), best[1]
