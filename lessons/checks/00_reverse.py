"""What lesson 00 says, against what it computed."""

import itertools

import numpy as np

from minitransformer.data.tasks import is_held_out, make_batch
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import exact_match
from minitransformer.example import load_example
from minitransformer.models import Transformer

HANDS = {  # name: (what is right, {known mistake, as a sentence: what it gives}), of the lesson's variables
    "small_loss": (
        lambda run: -np.log(run.p_right).mean(),
        {
            "this is the sum of the five losses, not their mean": lambda run: -np.log(run.p_right).sum(),
            "first the logarithm of each, then the mean, not the other way round": (
                lambda run: -np.log(run.p_right.mean())
            ),
            "the minus is forgotten, and a loss is never negative": lambda run: np.log(run.p_right).mean(),
            "these are bits; the nat needs the natural logarithm": lambda run: -np.log2(run.p_right).mean(),
            "this is the mean of 1 − p; the loss takes −ln p": lambda run: (1 - run.p_right).mean(),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    lesson.example("output.p", run.p)
    lesson.example("output.L", run.L)
    lesson.quote("Its 85,568 numbers are nearly all random", run.model.num_parameters())
    lesson.quote("after each batch of 64 words", run.TrainingSettings().batch_size)
    small = load_example().model
    lesson.quote("a second model, with only 826", small.num_parameters())
    right = sum(
        round(exact_match(greedy_decode(small, pair.source, 7), pair.target_out) * len(words))
        for words in (np.array([*itertools.product(range(3, 7), repeat=length)]) for length in range(1, 5))
        for pair in [without_end(words)]
    )
    lesson.quote("it reverses 332 of the 340 words", right, 4 + 16 + 64 + 256)
    attention = run.task.encode("attention")
    lesson.check("attention is held out", is_held_out(attention[None])[0], at_least=1)
    if not lesson.fast:
        lesson.quote("More than 99 % of them are right", 100 * run.score, within=0.02)
        lesson.quote("Of words with 12 letters, at least 95 % are right", 12, min(95, 100 * run.per_length[12]))
        lesson.check("share of 13-letter words that are right", run.per_length[13], at_most=0.3)
        lesson.check("share of 14-letter words that are right", run.per_length[14], at_most=0.01)
        for word in ("attention", "noonracecar", "aaaaaaaaaa"):
            lesson.check(
                f"mean weight on the mirror letter of {word}", weights(run, word)[::-1].diagonal().mean(), at_least=0.4
            )
        first = weights(run, "abcdefghijklmn")[0].argmax()
        lesson.check("place that the first row of 14 letters looks at, from 0", first, at_most=12)
        lesson.check("nats below the level of reading, of held-out words", 3.155 - held_out_loss(run), at_least=0.5)

    p, cost = run.p_right, -np.log(run.p_right)
    lesson.quote("It gives «o» 0.697 and «p» 0.297", p[1], run.p[1, run.right[0]])
    lesson.quote("5.559 for «o» and 4.705 for «p»", *run.example["output.z"][1, [run.right[1], run.right[0]]])
    for row, t in (("bos→p", 0), ("p→o", 1), ("o→t", 2), ("t→s", 3), ("s→eos", 4)):
        lesson.quote(f"{row} {p[t]:.3f} {cost[t]:.3f}", p[t], cost[t])
    lesson.quote("L = mean of −ln p = 0.1108", run.L)
    lesson.check("share of the row p→o in the loss", cost[1] / cost.sum(), at_least=0.5)
    lesson.quote("half costs 0.693", np.log(2))
    lesson.quote("0.953 · 0.697 · 0.945 · 0.917 · 0.999 = 0.575", *p, p.prod())
    lesson.quote("with V = 29 it is 3.367 nats", run.V, np.log(run.V))
    lesson.quote("Ours pays 4.198 instead of 3.367", run.loss_before, np.log(run.V), within=1e-4)
    typical = np.exp(-run.loss_before)
    lesson.quote(
        "exp(−4.198) = 1.5 %, *less* than the 3.4 % of a blind guess", -run.loss_before, 100 * typical, 100 / run.V
    )
    lesson.quote("A blind guess gives the right one 1/29 = 3.4 %", 1, run.V, 100 / run.V)
    lesson.quote("boldness is 0.907, luck is 0.077", run.boldness, run.luck, within=0.01)
    lesson.quote("In 81 % of all places", 100 * run.repeats)
    lesson.quote("the 81 % drops to 4 %", 100 * run.repeats, 100 * run.untied_repeats)
    lesson.check("without knowledge, luck is 0 on average", abs(np.mean([luck(run, seed) for seed in range(12)])), 0.06)
    lesson.claim(
        "the loss of an untrained model is ln V",
        "half right",
        f"ln V = {np.log(run.V):.3f} is the loss of equal guesses; this Transformer begins at {run.loss_before:.3f}, "
        f"because its tied matrix makes it repeat the token just read in {run.repeats:.0%} of all places",
        said="course notes and guides to debugging networks",
    )

    share = np.bincount(run.ids, minlength=run.V) / len(run.ids)
    share = share[share > 0]
    entropy = -(share * np.log(share)).sum()
    lesson.quote("That costs 3.216 nats", entropy)
    guesses = np.random.default_rng(0).dirichlet(50 * share, size=1000)  # 1000 others, near to it
    lesson.check(
        "the best of 1000 other guesses costs more, by", (-np.log(guesses) @ share).min() - entropy, at_least=0
    )
    counting = (np.log(12) + 6.5 * np.log(26)) / 7.5
    lesson.quote("There are 6.5 letters on average, and 7.5 tokens", np.arange(1, 13).mean(), np.arange(2, 14).mean())
    lesson.quote("(ln 12 + 6.5 ln 26) / 7.5 = 3.155", 12, 6.5, 26, 7.5, counting)
    gpt2 = 0.02 * 768**0.5  # the size of a logit at the start
    lesson.check("a new GPT-2 is bold by half the variance of its logits", abs(gpt2**2 / 2 - 0.15), 0.005)
    lesson.quote("exp(−0.02) = 0.98", -0.02, np.exp(-0.02))
    nine, once = -np.log(0.9), -np.log(0.0001)
    lesson.quote("(9 · 0.105 + 9.210) / 10 = 1.016", 9, nine, once, 10, (9 * nine + once) / 10)
    lesson.quote("ln((e^3.15 + 28)/29) − 3.15/29 = 0.46", 3.15, 28, 29, 3.15, 29, run.boldness_of_one)


def without_end(words):
    """Pairs for the running example, whose sources do not end in eos."""
    pair = make_batch(words, words[:, ::-1])
    return pair._replace(source=words)


def luck(run, seed):
    """How far the logits of the right tokens are above the mean, in an untrained model."""
    source, target_in, target_out = (ids[:100] for ids in (*run.batch.inputs, run.batch.target_out))
    z = Transformer(run.model.config, seed=seed)(source, target_in)
    of_right = np.take_along_axis(z, target_out[..., None], axis=-1)[..., 0]
    return (of_right - z.mean(axis=-1))[target_out != 0].mean()


def weights(run, word):
    """The trained model's attention weights from each letter of the answer to each letter of the word."""
    ids = run.task.encode(word)[None]
    return run.model.attention_weights(*make_batch(ids, ids[:, ::-1]).inputs).cross[0][0].mean(axis=0)[:-1, :-1]


def held_out_loss(run):
    """Nats per token on held-out words, after training."""
    counts = run.test.target_out > 0
    z, _ = run.model.forward(*run.test.inputs)
    return run.loss_of(z[counts].astype(float), run.test.target_out[counts])


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("ln 10 = 2.303, so the logits", 10, np.log(10))
