"""What lesson 16 says, against what it computed."""

import itertools
from unittest import mock

import numpy as np

from minitransformer import decoding


def softmax(s):
    """Weights of one row of scores (S,)."""
    return np.exp(s - s.max()) / np.exp(s - s.max()).sum()


HANDS = {  # name: (what is right, {known mistake: what it gives})
    "o_new": (
        lambda run: softmax(run.k @ run.q_new / run.D**0.5) @ run.v,
        {
            "the scores are not divided by √D": lambda run: softmax(run.k @ run.q_new) @ run.v,
            "this is the mean of the keys: a row takes home values": lambda run: (
                softmax(run.k @ run.q_new / run.D**0.5) @ run.k
            ),
            "the newest key is left out: a row may look at its own token": lambda run: (
                softmax(run.k[:-1] @ run.q_new / run.D**0.5) @ run.v[:-1]
            ),
            "the softmax is missing: scores are no weights": lambda run: run.k @ run.q_new / run.D**0.5 @ run.v,
            "these are its weights, and its answer is the mean of the values with them": lambda run: softmax(
                run.k @ run.q_new / run.D**0.5
            ),
            "all values count the same: where is the query?": lambda run: run.v.mean(axis=0),
            "only its own value: the row may look at all five": lambda run: run.v[-1],
            "divided by D, not by √D": lambda run: softmax(run.k @ run.q_new / run.D) @ run.v,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    of_the_example(lesson, run)
    of_the_words(lesson, run)
    of_the_rest(lesson, run)
    if not lesson.fast:
        of_the_training(lesson, run)


def of_the_example(lesson, run):
    """The word "stop"."""
    lesson.example("decoder.self.k[0]", run.k)
    lesson.example("decoder.self.v[0]", run.v)
    lesson.example("decoder.self.o[0]", run.o)
    lesson.example("output.z", run.z_cached)
    lesson.check("the line of the new row", np.abs(HANDS["o_new"][0](run) - run.o[-1]).max(), 1e-14)
    p = run.numbers["output.p"]
    chosen = p.max(axis=1)
    lesson.quote("p 0.953 o 0.697 t 0.945 s 0.917 eos 0.999", *chosen)
    lesson.quote("«o» with 0.697 against «p» with 0.297", *np.sort(p[1])[:-3:-1])
    lesson.quote("probability is the product, 0.575", chosen.prod())
    lesson.quote("1 + 2 + 3 + 4 + 5 = 15 rows, and 10 of them", 1, 2, 3, 4, 5, 15, 15 - 5)
    for t in range(1, 5):
        before = run.example.model(run.example.source, run.example.target_in[:, :t])
        moved = np.abs(before - run.z_cached[None, :t]).max()
        lesson.check(f"rows before token {t} change with it by", moved, at_most=1e-13)
    sharp, two = run.sharpened(run.star, temperature=0.5), run.sharpened(run.star, top_k=2)
    lesson.quote("A temperature of 0.5 squares all probabilities and makes these two 0.846 and 0.154", 0.5, *sharp[:2])
    lesson.quote("Top-2 makes them 0.701 and 0.299", -2, *two[:2])


def of_the_words(lesson, run):
    """The words "t" and "oo", and all others."""
    tokens = run.example.tokens
    o, t, eos = tokens.index("o"), tokens.index("t"), tokens.index("<eos>")
    ln_p = run.reader("t")
    p = [np.exp(ln_p(ids)) for ids in ((), (t,), (t, t))]
    lesson.quote("first token t 0.511 eos 0.486", p[0][t], p[0][eos])
    lesson.quote("after t t 0.615 eos 0.378", p[1][t], p[1][eos])
    lesson.quote("after t t t 0.048 eos 0.952", p[2][t], p[2][eos])
    tt = [p[0][t], p[1][t], p[2][eos]]
    lesson.quote('"tt" 0.511 · 0.615 · 0.952 = 0.299', *tt, np.prod(tt))
    lesson.quote('"t" 0.511 · 0.378 = 0.193', p[0][t], p[1][eos], p[0][t] * p[1][eos])
    answers = {ids: np.exp(total) for total, ids in run.answers}
    lesson.quote(
        'the model gives "tt" the probability 0.299 and the right answer 0.193, and it gives 0.486 to the answer',
        *(answers[ids] for ids in ((t, t, eos), (t, eos), (eos,))),
    )
    lesson.check("the empty answer is the likeliest", max(answers, key=answers.get) == (eos,), at_least=1)

    wrong, missed = 0, 0
    for length in range(1, 5):
        words = np.array(list(itertools.product(range(3, 7), repeat=length)))
        greedy = decoding.greedy_decode(run.example.model, words, 7)
        best = decoding.beam_search(decoding.decoding_state(run.example.model, words, 7), len(words), 7, 1, 50, 0.0)
        for word, ids, ranked in zip(words, greedy, best, strict=True):
            ids = tuple(ids[ids != 0].tolist())
            wrong += ids != (*word[::-1].tolist(), eos)
            missed += ids != ranked[0].ids
    lesson.quote("reverses 332 of its 340 words", 340 - wrong, 4 + 16 + 64 + 256)
    lesson.check("words on which greedy misses the likeliest answer", missed, at_most=1)

    oo = run.tree_of_oo
    lesson.quote("answer «o» the probability 0.456", oo[o, eos])
    lesson.quote('right answer "oo" only 0.447', oo[o, o, eos])
    short, long = np.log(oo[o, eos]), np.log(oo[o, o, eos])
    lesson.quote("−0.785 / (7/6)^0.6 = −0.716", short, 7, 6, 0.6, short / (7 / 6) ** 0.6)
    lesson.quote("−0.806 / (8/6)^0.6 = −0.678", long, 8, 6, 0.6, long / (8 / 6) ** 0.6)
    first = np.exp(run.reader("oo")(()))
    lesson.quote("«o» (0.967) and «s» (0.020)", first[o], first[tokens.index("s")])
    lesson.quote(
        'the finished «o» (0.456) and the beginning "oo" (0.455)',
        oo[o, eos],
        first[o] * np.exp(run.reader("oo")((o,)))[o],
    )
    lesson.quote('the finished "oo" (0.447)', oo[o, o, eos])
    empty, right = np.log(answers[eos,]), np.log(answers[t, eos])
    lesson.quote("The empty answer has the score −0.721 / 1", empty, 1)
    lesson.quote("−1.643 / (7/6)^0.6 = −1.498", right, 7, 6, 0.6, right / (7 / 6) ** 0.6)
    lesson.claim(
        "choosing the likeliest token each time gives the likeliest sentence",
        "wrong",
        f"for a source of one letter the greedy answer has the probability {answers[t, t, eos]:.3f}, and the "
        f"likeliest, which is empty, {answers[eos,]:.3f}",
        said="introductions to decoding",
    )


def of_the_rest(lesson, run):
    """Penalty, work, passes and bytes."""
    penalty = decoding.length_penalty
    lesson.quote("(15/14)^0.6 − 1 = 4.2 %", 15, 14, 0.6, 1, 100 * (penalty(10) / penalty(9) - 1))
    T = np.arange(1, 40.0)
    for alpha in (0.0, 0.6, 1.0, 2.0):
        score, h = lambda T, alpha=alpha: -T * ((5 + T) / 6) ** -alpha, 1e-30
        derivative = -(((5 + T) / 6) ** -alpha) * (1 - alpha * T / (5 + T))
        true = score(T + 1j * h).imag / h
        lesson.check(f"derivative of the score, α = {alpha}", np.abs(derivative - true).max(), 1e-14)
        if alpha <= 1:
            lesson.check(f"the score falls, α = {alpha}", derivative.max(), at_most=0)
    lesson.check("from T = 5 on it rises with α = 2", derivative[5:].min(), at_least=0)
    lesson.quote("For 64 tokens and 16 source tokens, the work without the cache is 34", 64, 16, run.times[64])
    in_training, in_decoding = count_passes(run.model)
    lesson.check("passes in training", in_training, at_most=1)
    lesson.check("passes in decoding", in_decoding, at_least=100)
    lesson.quote("For 64 tokens, 32.5 rows are read on average", 64, np.arange(1, 65).mean())
    lesson.quote("4 bytes = 4,915,200 bytes", 4, 2 * 2 * 6 * 100 * 512 * 4)
    lesson.claim(
        "for 100 tokens an RNN takes 100 steps and a Transformer 1",
        "half right",
        f"in training the Transformer's decoder takes {in_training}; in decoding it takes "
        f"{in_decoding}, one after another, as the RNN does in both",
        said="summaries of the paper's table 1",
    )


def of_the_training(lesson, run):
    """What was measured on the trained model."""
    gain = np.array(run.averaged) - run.last
    lesson.check("points gained by averaging, mean of the last six moments", gain[-6:].mean(), at_least=8)
    lesson.check("points lost by averaging, at most, in the first six moments", gain[:6].min(), at_most=-2)
    lesson.check("largest fall of the last weights, in points", -np.diff(run.last).min(), at_least=10)
    found, right = run.found, run.right
    mean = {
        key: np.mean([(answer.log_prob, len(answer.ids)) for answer in best], axis=0) for key, best in found.items()
    }
    share = {
        key: 100 * np.mean([answer.ids == ids for answer, ids in zip(best, right, strict=True)])
        for key, best in found.items()
    }
    empty = {key: sum(len(answer.ids) == 1 for answer in best) for key, best in found.items()}
    greedy, wide, ranked = (0.0, 1), (0.0, 16), (0.6, 16)
    lesson.quote("the mean of ln p rises from −4.08 to −3.62", mean[greedy][0], mean[wide][0], within=0.02)
    lesson.quote("7.80 tokens instead of 9.75", mean[wide][1], mean[greedy][1], within=0.02)
    lesson.quote("17.0 % instead of 18.0 %", share[wide], share[greedy], within=0.05)
    lesson.quote("Of the 200 answers, 36 are *empty*", len(right), empty[wide], within=0.05)
    lesson.quote("19.0 % are right", share[ranked], within=0.05)
    lesson.check("empty answers with α = 0.6", empty[ranked], at_most=0)
    wrong, errors = len(run.wrong), len(run.search_errors)
    lesson.quote("Of the 164 wrong greedy answers only 7 are", wrong, errors, within=0.05)
    lesson.quote("The other 157 are", wrong - errors, within=0.05)
    lesson.claim(
        "a wider beam gives better answers",
        "half right",
        f"a beam of 16 instead of 1, without penalty: ln p {mean[wide][0]:.2f} instead of {mean[greedy][0]:.2f}, but "
        f"{empty[wide]} of {len(right)} answers are empty, and {share[wide]:.1f} % are right instead of "
        f"{share[greedy]:.1f} %",
        said="introductions to beam search",
    )


def count_passes(model):
    """How often 100 tokens go through a layer of the decoder, in training and in decoding."""
    bottom, ids, passes = model.decoder.layers[0].self_attention.sublayer.qkv, np.full((1, 100), 3), [0]
    forward = type(bottom).forward

    def counted(layer, *arguments):
        passes[-1] += layer is bottom
        return forward(layer, *arguments)

    with mock.patch.object(type(bottom), "forward", counted):
        model.forward(ids, ids)
        passes.append(0)
        decoding.generate_from(decoding.decoding_state(model, ids, 100), np.array([[1]]), 100, eos=None)
    return passes


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("for V = 7 and T = 5, 245 instead", 7, 5, 5 * 7**2)
    lesson.quote("= 16,807 sentences", 7**5)
