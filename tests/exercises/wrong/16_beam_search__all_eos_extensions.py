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
