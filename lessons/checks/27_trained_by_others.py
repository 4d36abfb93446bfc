"""What lesson 27 says, against what it computed, or what was recorded where the model is missing."""

import numpy as np

HANDS = {
    "dmean": (
        lambda run: (unit(run.other) - cosine(run) * unit(run.mean)) / length(run.mean),
        {
            "mean also stands in its own length: subtract cos mean / |mean|": (
                lambda run: unit(run.other) / length(run.mean)
            ),
            "this is the gradient of mean·other, without the lengths": lambda run: run.other,
            "a longer mean turns more slowly: divide by |mean|": lambda run: (
                unit(run.other) - cosine(run) * unit(run.mean)
            ),
            "cos stands before mean / |mean|, not before mean": (
                lambda run: (unit(run.other) - cosine(run) * run.mean) / length(run.mean)
            ),
            "this is the gradient with respect to other": (
                lambda run: (unit(run.mean) - cosine(run) * unit(run.other)) / length(run.other)
            ),
        },
    ),
}


def length(vector):
    return np.sqrt(vector @ vector)


def unit(vector):
    return vector / length(vector)


def cosine(run):
    return unit(run.mean) @ unit(run.other)


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_by_hand(lesson, run)
    quote_the_model(lesson, run)
    quote_where_it_looks(lesson, run)
    quote_the_changes(lesson, run)
    quote_deeper(lesson, run)
    check_answers(lesson, run)
    check_the_record(lesson, run)
    claim(lesson, run)


def check_by_hand(lesson, run):
    """The slope of the cosine, and a key hidden or emptied, in the running example."""
    u, h = np.random.default_rng(0).standard_normal(5), 1e-30
    slope = run.cosine(run.mean + h * 1j * u, run.other).imag / h
    lesson.check("dmean, by the complex step", abs(slope - run.cosine_backward(run.mean, run.other) @ u), 1e-14)
    v, p = run.example["cross.v"], run.softmax(run.example["cross.s"])
    lesson.example("cross.p", p)
    rest = (p[..., 1:] / (1 - p[..., :1])) @ v[:, 1:]
    lesson.example("cross.o", p[..., :1] * v[:, :1] + (1 - p[..., :1]) * rest)
    s, v = run.hide(3, run.example["cross.s"][None], v[None])
    lesson.check("hidden: the last sum", run.error((run.softmax(s) @ v)[0], rest), 1e-13)
    s, v = run.empty(3, run.example["cross.s"][None], run.example["cross.v"][None])
    lesson.check("emptied: the sum times 1 − p_0", run.error((run.softmax(s) @ v)[0], (1 - p[..., :1]) * rest), 1e-13)
    level = np.full((6, 2), 0.3)
    s, _ = run.steady(level)(3, run.example["cross.s"][None], run.example["cross.v"][None])
    lesson.check("the weight that was asked for", run.error(run.softmax(s)[..., 0], 0.3), 1e-13)
    for layer in (1, 6):
        same, _ = run.hide(layer, s, run.example["cross.v"][None])
        lesson.check("layers 1 and 6 stay as they are", np.abs(same - s).max(), 0)


def quote_the_model(lesson, run):
    """The file and the cosines."""
    lesson.quote("a similarity of 0.763, and either has 0.03", run.close, run.far_cat)
    lesson.quote("a similarity of 0.763, and either has 0.03", run.close, run.far_kitten)
    lesson.quote("91 megabytes from a stranger", 4 * run.size / 1e6)


def quote_where_it_looks(lesson, run):
    """Shares of attention, and lengths of values."""
    middle = run.seen[1:5].mean(axis=0)
    lesson.check("half of all attention", abs(middle[0] - 0.5), 0.05)
    lesson.quote("Equal attention would give it 0.06", middle[2], within=0.2)
    lesson.quote("Equal attention would give each token 0.06", middle[2], within=0.2)
    lesson.quote("Here [SEP] gets only 0.03", middle[1], within=0.2)
    lesson.check("a nineteenth as long as a word's", abs(middle[4] / middle[3] - 19), 2)
    weights, sizes = run.arrives
    lesson.check("the first column is bright", weights[1:, 0].min(), at_least=0.3)
    lesson.check("... and then dark", sizes[1:, 0].max(), 0.25)


def quote_the_changes(lesson, run):
    """What is left of the embedding."""
    own, same, package = ({name: numbers[i] for name, numbers in run.results.items()} for i in range(3))
    lesson.quote("with an empty value the cosine is 0.998", own["empty"][0], within=0.001)
    lesson.quote("The cosine falls to 0.62", own["hide"][0], within=0.03)
    lesson.quote("the same for 19 of 100", 100 * same["hide"][0], 100, within=0.2, full_only=True)
    lesson.quote(
        "from the same package for 35 of 100 instead of 60",
        *(100 * package["hide"][0], 100, 100 * package["as it is"][0]),
        within=0.1,
        full_only=True,
    )
    found = own["hide a word"][0], 100 * same["hide a word"][0], 100 * package["hide a word"][0]
    lesson.quote("far less: 0.93, 60 and 61", *found, within=0.1, full_only=True)
    widths = [max(high - mean, mean - low) for numbers in run.results.values() for mean, low, high in numbers]
    lesson.quote("all to within 6 of 100", np.ceil(100 * max(widths)), 100, within=0.15, full_only=True)
    louder = np.mean(1 / (1 - run.seen[1:5, 0]))
    lesson.check("about twice as loud", abs(louder - 2), 0.2)


def quote_deeper(lesson, run):
    """One loudness, and two gradients."""
    own, same, _ = run.held
    lesson.quote("the cosine is still 0.97", own[0], within=0.01)
    lesson.quote(
        "neighbor is the same for only 69 of 100 sentences",
        *(100 * same[0], 100),
        within=0.15,
        full_only=True,
    )
    shares, emptying, hiding, mixed = run.gradients[:, :2], *run.gradients.T[2:]
    lesson.quote("at least 0.94", emptying.min(), within=0.05)
    lesson.quote("gives [CLS] 0.03 to 0.06 of its total", shares[:, 0].min(), shares[:, 0].max(), within=0.3)
    lesson.quote("a share of 0.23", shares[:, 1].mean(), within=0.1)
    lesson.quote("a correlation of 0.7 to 0.8", hiding.min(), hiding.max(), within=0.1, full_only=True)
    if not lesson.fast:
        lesson.check("of hiding p∘dp knows nothing", np.abs(mixed).mean(), 0.25)


def check_answers(lesson, run):
    """The exercises: a softmax with a 1, and [CLS] hidden in one layer at a time."""
    s = np.random.default_rng(3).standard_normal((4, 6))
    p = np.exp(s) / (1 + np.exp(s).sum(axis=-1, keepdims=True))
    one_more = run.softmax(np.hstack([np.zeros((4, 1)), s]))[:, 1:]
    lesson.check("a key with the score 0", run.error(p, one_more), 1e-14)
    dp, h = np.random.default_rng(4).standard_normal((4, 6)), 1e-30
    stepped = np.exp(s[:1] + h * 1j * np.eye(6))
    slopes = (stepped / (1 + stepped.sum(axis=-1, keepdims=True)) @ dp[0]).imag / h
    ds = p[0] * (dp[0] - p[0] @ dp[0])
    lesson.check("its ds", run.error(ds, slopes), 1e-13)
    alone = run.measured("one layer at a time", lambda: [hidden_in(run, layer) for layer in range(1, 7)])
    lesson.quote("0.998, 0.97, 0.96, 0.96, 0.94 and 0.98", *alone, within=0.02)
    together = 1 - run.results["hide"][0, 0]
    lesson.quote("lose 0.17 in all, where the four together lose 0.38", (1 - alone[1:5]).sum(), together, within=0.1)


def hidden_in(run, only):
    """The mean cosine of 40 sentences with themselves, with [CLS] hidden in one layer."""

    def change(layer, s, v):
        return (np.where(np.arange(s.shape[3]) == 0, -np.inf, s), v) if layer == only else (s, v)

    return (run.embed(run.rows[:40], change) * run.before[:40]).sum(axis=1).mean()


def check_the_record(lesson, run):
    """A full run finds what was recorded, up to the docstrings of another Python."""
    if lesson.fast or run.folder is None:
        return
    found, recorded = run.measured.found, run.measured.recorded
    assert found.keys() == recorded.keys(), "copy the numbers of this run to support/27_trained_by_others.json"
    assert found["tokens"] == recorded["tokens"]
    for name in found.keys() - {"tokens", "size"}:
        worst = np.abs(np.array(found[name]) - np.array(recorded[name])).max()
        lesson.check(f"{name}, against the record", worst, 0.3 if name == "gradients" else 0.1)


def claim(lesson, run):
    """Verdicts on popular texts."""
    share, own = run.seen[1:5, 0].mean(), {name: numbers[0, 0] for name, numbers in run.results.items()}
    lesson.claim(
        "the attention that [CLS] gets shows that it gathers what the sentence says",
        "wrong in this model",
        f"in layers 2 to 5 of a model for sentences it gets {share:.2f} of all attention, and its value is a 19th "
        f"as long as a word's: without the value, embeddings keep a cosine of {own['empty']:.3f} with themselves",
        said="introductions to BERT, and captions of its attention maps",
    )
    lesson.claim(
        "attention to a special token is a no-op: looking there more or less changes little",
        "half right",
        f"what it hands out can go (cosine {own['empty']:.3f}), but not the weight that it takes: if the other tokens "
        f"share it, {own['hide']:.2f} is left; the gradient of the weights answers the first question only",
        said="Clark et al. 2019 on BERT-base (from a gradient), and texts on attention sinks",
    )
