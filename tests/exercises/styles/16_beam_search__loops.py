def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    best_score, best_ids = -np.inf, None
    living = [([], 0.0)]
    for step in range(max_new_tokens):
        candidates = []
        for ids, total in living:
            row = log_p(tuple(ids))
            for token in range(len(row)):
                candidates.append(([*ids, token], total + row[token]))
        candidates.sort(key=lambda one: -one[1])
        living, last = [], step == max_new_tokens - 1
        for rank, (ids, total) in enumerate(candidates):
            ended = ids[-1] == EOS
            if not ended and len(living) < beam:
                living.append((ids, total))
            elif not ended or rank >= beam:
                continue
            if ended or last:
                score = total / ((5 + len(ids)) / 6) ** alpha
                if score > best_score:
                    best_score, best_ids = score, ids
    return best_score, best_ids
