def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    alive, finished = [(0.0, ())], []
    for length in range(1, max_new_tokens + 1):
        extended = [(total + x, (*ids, token)) for total, ids in alive for token, x in enumerate(log_p(ids))]
        extended.sort(reverse=True)
        penalty = ((5 + length) / 6) ** alpha
        finished += [(total / penalty, ids) for total, ids in extended[:beam] if ids[-1] == EOS]
        alive = [(total, ids) for total, ids in extended if ids[-1] != EOS][:beam]
    return max(finished + [(total / penalty, ids) for total, ids in alive])
