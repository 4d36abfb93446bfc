"""Speculative decoding: a small model guesses the next tokens, and the large one reads all guesses in one pass.

To read one token, a model reads all of its weights; to read five in one pass, it reads them once. So a small model,
the draft, writes gamma tokens, each drawn from its own distribution q, and one pass of the large model over them gives
p, what it would have said after each (Leviathan, Kalman and Matias 2023; Chen et al. 2023). The guesses are judged in
turn:

    Accept   the guess x with probability min(1, p(x) / q(x)).
    Else     draw the token from the residual max(0, p - q), normalized, and stop: the other guesses followed x.
    At last  if all are accepted, draw one token more from p, which the pass has given, too.

The text is distributed as if the large model had written it alone, whatever the draft is. A token x is accepted with
probability q(x) min(1, p(x) / q(x)) = min(p(x), q(x)). A guess is rejected with probability
1 - sum min(p, q) = sum max(0, p - q), which is the divisor of the residual. So x comes out with probability

    min(p(x), q(x)) + max(0, p(x) - q(x)) = p(x).

Temperature, top-k and top-p change p and q before that. A good draft only makes it faster: if a guess is accepted with
probability a = sum min(p, q), a pass yields 1 + a + ... + a^gamma = (1 - a^(gamma + 1)) / (1 - a) tokens.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.decoding.generate import Greedy, log_softmax
from minitransformer.decoding.rereading import End, ends_and_filler
from minitransformer.decoding.sampling import Sampling

GAMMA = 4  # guesses in a pass


def judge(
    guesses: Sequence[int], p: np.ndarray, q: np.ndarray, draw: Callable[[np.ndarray], np.ndarray]
) -> tuple[int, int]:
    """How many of gamma guesses are accepted, and the token after these.

    p (gamma + 1, V) and q (gamma, V) are the probabilities of the large model and of the draft, whose guesses were
    drawn from q. `draw` draws an id from each row of weights (1, V). The arithmetic is that of p and q, so that a test
    can compute in fractions.
    """
    for count, x in enumerate(guesses):
        accept = min(1, p[count, x] / q[count, x])
        if not draw(np.array([[1 - accept, accept]]))[0]:
            residual = np.maximum(p[count] - q[count], 0)
            return count, int(draw((residual if residual.any() else p[count])[None])[0])  # p: all was rounded to 0
    return len(guesses), int(draw(p[-1:])[0])


class Speculation:
    """Generates with a draft, and counts how well it guesses.

    `counts` has the "passes" of the large model, the "tokens" that they yielded, and how many guesses were "judged" and
    "accepted"; those after a rejected one are not judged.

    `draft` is the decoding state of the small model for one text: a SlidingState, or what has its `remaining`, `extend`
    and `cut_back`. Raises ValueError if gamma is less than 1.
    """

    def __init__(self, draft: Any, gamma: int = GAMMA) -> None:
        self.draft, self.gamma = draft, check_integer("gamma", gamma, least=1)
        self.counts: Counter[str] = Counter()

    def rates(self) -> tuple[float, float]:
        """The share of the judged guesses that were accepted, and the tokens per pass; 0 before there are any."""
        count = self.counts
        return count["accepted"] / max(1, count["judged"]), count["tokens"] / max(1, count["passes"])

    def generate_tokens(
        self,
        state: Any,
        prompt: np.ndarray,
        max_new_tokens: int,
        choose: Greedy | Sampling | None = None,
        *,
        eos: End = "model",
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What `generate_tokens` yields for `prompt` (1, n), distributed in the same way: (ids (1,), log_probs (1,)).

        `state` is the large model's: like a draft, with `extend_last`. The log probabilities are the large model's.
        Raises ValueError for more than one text, for attention that cannot be cut back, and if max_new_tokens is less
        than 1.
        """
        check_integer("max_new_tokens", max_new_tokens, least=1)
        if len(prompt) != 1:
            raise ValueError(f"a draft guesses for one text, got {len(prompt)}")
        for each in (state, self.draft):
            each.cut_back(0)  # refused at once, not at the first rejection
        choose, left = choose or Greedy(), max_new_tokens
        ends, _ = ends_and_filler(getattr(state, "model", None), eos)
        unread = unguessed = prompt  # what the large model, and what the draft has not read
        while left:
            guesses, q = self._guess(unguessed, min(left - 1, state.remaining - unread.shape[1]), choose)
            gamma = len(guesses)
            ids = np.append(unread, [guesses], axis=1).astype(prompt.dtype)
            log_p = log_softmax(to_host(state.extend_last(ids, gamma + 1))[0])
            count, last = judge(guesses, choose.probabilities(log_p), q, choose.draw)
            new = np.array([*guesses[:count], last], prompt.dtype)
            read = max(0, gamma - 1)  # the guesses that the draft has read
            state.cut_back(gamma - count)
            self.draft.cut_back(max(0, read - count))
            unread, unguessed, left = new[None, -1:], new[None, min(read, count) :], left - len(new)
            self.counts.update(passes=1, tokens=len(new), judged=min(count + 1, gamma), accepted=count)
            for i, token in enumerate(new):
                yield new[i : i + 1], log_p[i, token, None]
                if token in ends:
                    return

    def _guess(self, unread, most, choose):
        """At most gamma and `most` guesses, if the draft can read them, and q (number of guesses, V)."""
        logits = self.draft.extend(unread)  # even before no guess, as the draft may start again from here
        guesses, q = [], []
        for i in range(min(self.gamma, most, self.draft.remaining + 1)):
            logits = self.draft.extend(np.array([guesses[-1:]])) if i else logits
            q.append(choose.probabilities(log_softmax(to_host(logits)))[0])
            guesses.append(int(choose.draw(q[-1][None])[0]))
        return guesses, np.array(q)
