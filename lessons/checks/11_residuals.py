"""What lesson 11 says, against what it computed."""

import numpy as np

from minitransformer.functional import layer_norm, layer_norm_backward, linear, linear_backward, relu, relu_backward
from minitransformer.gradcheck import complex_step
from minitransformer.layers import FeedForward, LayerNorm, Residual

HANDS = {
    "dx_of_x": (
        lambda run: run.dsum + run.through,
        {
            "the path around the sub-layer is forgotten": lambda run: run.through,
            "the path through the sub-layer is forgotten": lambda run: run.dsum,
            "a sum does not divide the gradient, it hands the whole of it to both terms": lambda run: (
                (run.dsum + run.through) / 2
            ),
            "the gradients of two uses add, they do not multiply": lambda run: run.dsum * run.through,
            "the gradients of two uses add, there is no minus": lambda run: run.dsum - run.through,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    verify_example(lesson, run)
    verify_dropout(lesson)
    verify_untrained(lesson, run)
    verify_training(lesson, run)
    verify_deeper(lesson, run)


def verify_example(lesson, run):
    """The row p→o, and the running example's feed-forward network in the lesson's post_norm."""
    example = run.example
    lesson.example("decoder.norm2.x", run.total)
    lesson.example("decoder.norm2.dx", run.dsum)
    lesson.example("decoder.norm1.dy", run.dx)
    y, back = run.post_norm(example["decoder.ffn.x"], 1.0, *pieces(example))
    lesson.example("decoder.norm3.y", y)
    lesson.example("decoder.norm2.dy", back(example["decoder.norm3.dy"]))

    lesson.quote("x = (0.427, 0.635, −1.310, 0.368, −1.138, 1.203)", *example["cross.x"][1])
    lesson.quote("f(x) = (0.119, 0.671, −0.082, 0.854, 0.374, −0.380)", *run.f_x[1])
    lesson.quote("x + f(x) = (0.546, 1.305, −1.392, 1.222, −0.765, 0.823)", *run.total[1])
    lengths = run.row_lengths
    lesson.quote("x has the length 2.28 and f(x) 1.22, so the sum is mostly old", *lengths[1, :2])
    lesson.quote("In row o→t it is 2.25 and 4.81", *lengths[2, :2])
    lesson.quote("dsum has the length 0.216, and what comes back through cross-attention has 0.532", *lengths[1, 2:])


def pieces(example):
    """The feed-forward network and the last norm of the decoder, each with its `back`."""

    def feed_forward(x):
        a, cache_1 = linear(x, example["decoder.ffn.W_1"], example["decoder.ffn.b_1"])
        r, cache_r = relu(a)
        y, cache_2 = linear(r, example["decoder.ffn.W_2"], example["decoder.ffn.b_2"])
        return y, lambda dy: linear_backward(relu_backward(linear_backward(dy, cache_2)[0], cache_r), cache_1)[0]

    def norm(x):
        y, cache = layer_norm(x, example["decoder.norm3.gamma"], example["decoder.norm3.beta"])
        return y, lambda dy: layer_norm_backward(dy, cache)[0]

    return feed_forward, norm


def verify_dropout(lesson):
    """The mean and the spread of a dropped feature."""
    values, chances = np.array([0, 1 / 0.9]), np.array([0.1, 0.9])
    lesson.check("the mask has mean 1", abs(values @ chances - 1), 1e-15)
    variance = (values**2) @ chances - 1
    lesson.check("the mask has variance 1/9", abs(variance - 1 / 9), 1e-15)
    lesson.quote("0.9²⁴ = 0.080", 0.9, 0.9**24)
    lesson.quote("3 becomes 0 in one case in ten and 3.33 in the others", 3, 0, 3 / 0.9)
    rng = np.random.default_rng(0)
    drawn = 3 * (rng.random(100_000) >= 0.1) / 0.9
    lesson.check("100,000 masks of a feature of 3: mean, in standard errors", abs(drawn.mean() - 3) * 100_000**0.5, 4)


def verify_untrained(lesson, run):
    """Before training, in float64."""
    post, pre = (run.sizes(run.untrained[placement].dx)[0] for placement in ("post", "pre"))
    past = run.sizes(run.past)[0]
    lesson.quote("(1/√2)²⁴ = 2⁻¹² = 0.00024", 1, 2, 2, 2**-12.0)
    lesson.quote("only 0.012 of the gradient gets through", past)
    lesson.quote("it is 2.3 times as large as at the top, and 5.6 times in pre-norm", post, pre)
    starve, within = [], []
    for stack in run.untrained.values():
        attention = [layer.sublayer for layer in stack.layers[1 : run.TOP : 2]]
        first, *_, last = (np.linalg.norm(each.qkv.W.grad[:, : 2 * run.C]) for each in attention)
        starve.append(last / first)
        top = stack.x[run.TOP]
        within.append(np.linalg.norm(top - top.mean(axis=1, keepdims=True)) / np.linalg.norm(top))
    lesson.quote("layer 12 is 0.0077 times that of layer 1 (pre-norm: 0.066)", 12, starve[0], 1, starve[1], within=0.01)
    lesson.quote("only 0.07 of their length (pre-norm: 0.41)", *within)
    lesson.claim(
        "post-norm shrinks the gradient by about 1/√2 in every sub-layer",
        "half right",
        f"true of the identity path: {past:.3f} is left after 24 sub-layers; but the whole gradient is "
        f"{post:.1f} times as large at the bottom as at the top",
        said="blog posts on pre-norm and post-norm",
    )
    lesson.claim(
        "with residual connections there are no gradient issues",
        "half right",
        "pre-norm has an identity path without norms; in post-norm the query and key gradients of layer 12 are "
        f"{starve[0]:.4f} times those of layer 1, and ten steps without warm-up leave less than a thousandth of the "
        "gradient; and a softmax can saturate",
        said="blog posts and slides",
    )


def verify_training(lesson, run):
    """What training does; bounds are far from what differs between processors."""
    _, gradients, rows = run.runs["post", 1]
    top = [each[run.TOP] for each in rows]
    lesson.quote("differ by 0.70 of their length, and after it by 0.08.", top[0], top[1], within=0.1)
    lesson.quote("It falls from 0.62 to 0.35", *run.alike, within=0.05)
    lesson.quote("After ten steps they are down to 0.00004", top[10], within=0.2)
    lesson.quote("After ten steps, 0.00004 of the gradient reaches the bottom", gradients[10][0], within=0.2)
    lesson.check("post-norm, warm-up, the same", run.runs["post", run.WARMUP][1][10][0], at_least=0.1)
    lesson.quote("ln 10 = 2.303", 10, np.log(10))
    if lesson.fast:
        return
    several = {warmup: [run.runs["post", warmup], *run.others[warmup]] for warmup in (1, run.WARMUP)}
    stuck = min(run.lowest(losses) for losses, _, _ in several[1])
    lesson.check("post-norm, no warm-up, four seeds: lowest loss", stuck, at_least=2.0)
    most = max(gradients[-1][0] for _, gradients, _ in several[1])
    lesson.check("post-norm, no warm-up, four seeds: most that is left of the gradient at the end", most, 1e-3)
    learnt = max(run.lowest(losses) for losses, _, _ in several[run.WARMUP])
    lesson.check("post-norm, warm-up, four seeds: highest of the lowest losses", learnt, 0.2)
    for warmup in (1, run.WARMUP):
        lesson.check(f"pre-norm, warm-up {warmup}: lowest loss", run.lowest(run.runs["pre", warmup][0]), 0.1)
    slow = run.lowest(run.slow[0])
    lesson.check("post-norm, no warm-up, a learning rate of 0.001: lowest loss", slow, 0.5)
    lesson.claim(
        "a post-norm Transformer does not train without warm-up",
        "half right",
        "12 layers at a learning rate of 0.007: no better than a guess on four seeds of four, and learnt with warm-up; "
        "at 0.001 learnt without",
        said="papers and tutorials",
    )


def verify_deeper(lesson, run):
    """Glorot's feed-forward networks multiply variances by the same gain up and down."""
    rng, width, hidden = np.random.default_rng(2), 96, 128
    bound = (6 / (width + hidden)) ** 0.5
    up, down = [], []
    for _ in range(20):
        W_1, W_2 = rng.uniform(-bound, bound, (width, hidden)), rng.uniform(-bound, bound, (hidden, width))
        x, dy = rng.standard_normal((2, 200, width))
        a = x @ W_1
        up.append((((a > 0) * a) @ W_2).var())
        down.append((((dy @ W_2.T) * (a > 0)) @ W_1.T).var())
    gain = 2 * width * hidden / (width + hidden) ** 2
    lesson.check("dropout on attention weights: ds and dv", dropped_weights(rng), 1e-13)
    lesson.check("a feed-forward network's gain, forward", abs(np.mean(up) / gain - 1), 0.05)
    lesson.check("a feed-forward network's gain, backward", abs(np.mean(down) / gain - 1), 0.05)
    expected = {"post": 1, "pre": (1 + 24 * 4 / 9) ** 0.5}
    lesson.quote("√(1 + 24 · 4/9) = 3.4", 1, 24, 4, 9, expected["pre"])
    for placement, ratio in expected.items():
        found = feed_forward_stack(placement)
        lesson.check(f"{placement}-norm, feed-forward networks alone: |dx|", abs(found / ratio - 1), 0.1)
    lesson.quote("2/√5 = 0.89 instead of 0.71", 2, 5, 2 / 5**0.5, 2**-0.5)


def dropped_weights(rng):
    """The error of the gradients of o = (mask ∘ softmax(s)) v, as they stand in the prose."""
    s, v, do = rng.standard_normal((5, 7)), rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    mask = (rng.random(s.shape) > 0.4) / 0.6

    def softmax(s):
        p = np.exp(s - s.real.max(axis=-1, keepdims=True))
        return p / p.sum(axis=-1, keepdims=True)

    p = softmax(s)
    dv, dp = (mask * p).T @ do, mask * (do @ v.T)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    true_s = complex_step(lambda s: (do * ((mask * softmax(s)) @ v)).sum(), s)
    true_v = complex_step(lambda v: (do * ((mask * p) @ v)).sum(), v)
    return max(np.abs(ds - true_s).max(), np.abs(dv - true_v).max())


def feed_forward_stack(placement):
    """|dx| at the bottom of 24 feed-forward networks, F = 2C, as a share of the one at the top."""
    rng, C = np.random.default_rng(1), 32
    networks = [FeedForward(C, 2 * C, rng=rng, dtype="float64") for _ in range(24)]
    layers = [Residual(network, LayerNorm(C, dtype="float64"), placement=placement) for network in networks]
    x, caches = rng.standard_normal((32, 8, C)), []
    for layer in layers:
        x, cache = layer.forward(x)
        caches.append(cache)
    dx = dy = rng.standard_normal(x.shape)
    for layer, cache in zip(layers[::-1], caches[::-1], strict=True):
        dx = layer.backward(dx, cache)
    return np.linalg.norm(dx) / np.linalg.norm(dy)


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("32 + 12 · 32 = 416", 32, 12, 32, 32 + 12 * 32)
    rng = np.random.default_rng(5)
    x, W, dy = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((2, 7))
    true = run.complex_step(lambda x: (dy * np.concatenate([x, np.tanh(x @ W)], axis=1)).sum(), x)
    dx = dy[:, :3] + (dy[:, 3:] * (1 - np.tanh(x @ W) ** 2)) @ W.T
    lesson.check("side by side: dx", np.abs(dx - true).max(), 1e-13)
