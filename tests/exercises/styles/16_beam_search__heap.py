def beam_search(log_p, max_new_tokens, beam=4, alpha=0.6):
    import heapq

    def score(total, ids):
        return total * (6 / (5 + len(ids))) ** alpha

    def search(living, steps):
        if steps == 0:
            yield from living
            return
        every = ((total + p, (*ids, t)) for total, ids in living for t, p in enumerate(log_p(ids)))
        best = heapq.nlargest(2 * beam, every, key=lambda item: item[0])
        yield from (item for item in best[:beam] if item[1][-1] == EOS)
        yield from search([item for item in best if item[1][-1] != EOS][:beam], steps - 1)

    return max((score(*item), item[1]) for item in search([(0.0, ())], max_new_tokens))
