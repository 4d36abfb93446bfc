"""What lesson 10 says, against what it computed."""

import numpy as np

HANDS = {
    "through_sigma": (
        lambda run: -run.x_hat[1] * (run.dx_hat[1] * run.x_hat[1]).mean() / run.sigma[1],
        {
            "the sign: a larger σ makes x̂ smaller": lambda run: (
                run.x_hat[1] * (run.dx_hat[1] * run.x_hat[1]).mean() / run.sigma[1]
            ),
            "the factor 1/σ is missing": lambda run: -run.x_hat[1] * (run.dx_hat[1] * run.x_hat[1]).mean(),
            "σ² instead of σ": lambda run: -run.x_hat[1] * (run.dx_hat[1] * run.x_hat[1]).mean() / run.sigma[1] ** 2,
            "a sum over the features instead of their mean: where is the 1/C of ∂σ/∂x_j?": lambda run: (
                -run.x_hat[1] * (run.dx_hat[1] * run.x_hat[1]).sum() / run.sigma[1]
            ),
            "this is the path through μ": lambda run: np.full(run.C, -run.dx_hat[1].mean() / run.sigma[1]),
            "this is dσ, one number; how does it reach x_j?": lambda run: (
                -(run.dx_hat[1] * run.x_hat[1]).sum() / run.sigma[1]
            ),
            "σ moves all x̂, so the products dx̂ ∘ x̂ must be averaged": lambda run: (
                -(run.x_hat[1] ** 2) * run.dx_hat[1] / run.sigma[1]
            ),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson, run)
    verify_example(lesson, run)
    verify_circle(lesson, run)
    verify_signatures(lesson, run)
    verify_deeper(lesson, run)


def verify_example(lesson, run):
    """The row p→o, and why its size matters."""
    for name in ("mu", "sigma", "x_hat", "y", "dx_hat", "dx"):
        lesson.example(f"decoder.norm3.{name}", getattr(run, name))
    _, dgamma, dbeta = run.layer_norm_backward(run.dy, (run.x_hat, run.sigma, run.gamma))
    lesson.example("decoder.norm3.dgamma", dgamma)
    lesson.example("decoder.norm3.dbeta", dbeta)

    example = run.example
    sizes = example["decoder.norm1.x"].std(axis=-1)
    lesson.quote("features are 3.23, 3.25, 3.80, 1.60 and 1.43", *sizes)
    weight = [attention_to_o(example, factor) for factor in (1, 3, 10)]
    lesson.quote("looks at «o» with the weight 0.564", weight[0])
    lesson.quote("the weight is 0.876; make it ten times as large, and it is 0.999", *weight[1:])
    lesson.quote("1.2²⁴ = 79.5", 1.2, 1.2**24)
    lesson.quote("0.8²⁴ = 0.0047", 0.8, 0.8**24)
    for factor, (plain, normed) in run.after.items():
        lesson.check(f"24 matrices of size {factor}: the logarithm", abs(np.log(plain / factor**24)), 1.0)
        lesson.check(f"24 matrices of size {factor}, with LayerNorm: size 1", abs(normed - 1), 1e-3)

    x, x_hat, mu, sigma, change = run.x[1], run.x_hat[1], run.mu[1, 0], run.sigma[1, 0], run.change
    lesson.quote("x = (1.430, 1.797, −1.055, 0.335, −0.992, 2.236)", *x)
    lesson.quote("sum to 3.750, so μ = 0.625", x.sum(), mu)
    lesson.quote("squares of x − μ is 1.690, so σ = 1.300", ((x - mu) ** 2).mean(), sigma)
    lesson.quote("x̂_0 = (1.430 − 0.625)/1.300 = 0.619", 0, x[0], mu, sigma, x_hat[0])
    first = run.gamma[0], run.beta[0]
    lesson.quote("γ_0 = 2.09 and β_0 = −0.64", 0, first[0], 0, first[1])
    lesson.quote("y_0 = 2.09 · 0.619 − 0.64 = 0.654", 0, first[0], x_hat[0], -first[1], run.y[1, 0])
    lesson.quote("have moved by 0.1/1.300 = 0.077", 0.1, sigma, 0.1 / sigma)
    lesson.quote("moves by 0.058 only, and the others move down, by up to 0.023", change[0], -change.min())
    right, _ = HANDS["through_sigma"]
    lesson.check("the line of the path through σ", np.abs(right(run) - run.paths["through σ"][1]).max(), 1e-15)
    lesson.check("all others move down", change[1:].max(), 0)
    lesson.quote("dμ = 0.130 and dσ = 0.034", run.dmu[1, 0], run.dsigma[1, 0])
    lesson.quote("the same 0.130/6 = 0.022", run.dmu[1, 0], 6, run.paths["through μ"][1, 0])
    lesson.quote("here at most 0.007", np.abs(run.paths["through σ"][1]).max())


def attention_to_o(example, factor):
    """The weight of the letter o for row p→o in head 0 of cross-attention, if the row is `factor` times as large."""
    q = (factor * example["cross.x"][1] @ example["cross.W_q"] + example["cross.b_q"])[:3]
    weights = np.exp(example["cross.k"][0] @ q / 3**0.5)
    return weights[2] / weights.sum()


def verify_circle(lesson, run):
    """The token with three features, and ten times a token."""
    x_hat, mu, sigma = run.normalize(np.array([3.0, 1, -1]), eps=0)
    lesson.quote("x = (3, 1, −1) has μ = 1", 3, 1, -1, mu[0])
    lesson.quote("Divided by σ = 1.633", sigma[0])
    lesson.check("its length is √3", abs(np.linalg.norm(x_hat) - 3**0.5), 1e-14)
    dx, _, _ = run.layer_norm_backward(np.array([1.0, 0, 0]), (x_hat, sigma, 1.0))
    lesson.quote("(1.225, 0, −1.225) · 0.408 = (1/2", *x_hat, x_hat[0] / 3, 1, 2)
    lesson.check("dx = (1/6, −1/3, 1/6)/σ", np.abs(dx * sigma - np.array([1, -2, 1]) / 6).max(), 1e-15)

    dy = run.upstream
    y, cache = run.layer_norm(**run.given, eps=0.0)
    far, far_cache = run.layer_norm(**{**run.given, "x": 10 * run.given["x"]}, eps=0.0)
    lesson.check("ten times the token: the same y", np.abs(far - y).max(), 1e-13)
    ratio = run.layer_norm_backward(dy, far_cache)[0] * 10 / run.layer_norm_backward(dy, cache)[0]
    lesson.check("ten times the token: a tenth of dx", np.abs(ratio - 1).max(), 1e-11)


def verify_signatures(lesson, run):
    """Which orthogonality each mistake breaks."""
    found = run.signature
    lesson.check("μ forgotten: orthogonal to x̂", found["μ forgotten"][1], 1e-13)
    lesson.check("μ forgotten: not to 1", found["μ forgotten"][0], at_least=0.1)
    lesson.check("σ forgotten: orthogonal to 1", found["σ forgotten"][0], 1e-13)
    lesson.check("σ forgotten: not to x̂", found["σ forgotten"][1], at_least=0.1)
    for name in ("both forgotten", "γ outside the means"):
        lesson.check(f"{name}: orthogonal to neither", min(found[name]), at_least=0.1)
    lesson.quote("At C = 4 it is off by 100 %, but at C = 512 only by 5 %",
                 4, 100 * run.off[4], 512, 100 * run.off[512], within=0.1)  # fmt: skip
    lesson.quote("1 at C = 4, and 0.06 at C = 512", (2 / 2) ** 0.5, 4, (2 / 510) ** 0.5, 512)


def verify_deeper(lesson, run):
    """ε, C − 1 and the other things after the core."""
    eps, (x, gamma, beta), dy = 0.1, run.given.values(), run.upstream
    _, (x_hat, sigma, _) = run.layer_norm(x, gamma, beta, eps=eps)
    dx, dx_hat = run.found[0], gamma * dy
    lesson.check("1·dx = 0", np.abs(dx.sum(-1)).max(), 1e-14)
    share = (dx * x_hat).sum(-1) - eps / sigma[..., 0] ** 3 * (dx_hat * x_hat).sum(-1)
    lesson.check("x̂·dx = (ε/σ³)(x̂·dx̂)", np.abs(share).max(), 1e-13)
    small = run.normalize(1e-3 * np.array([1.0, -1, 1, -1]))[0]
    variance = (small**2).mean()
    lesson.quote("±0.001 comes out with a variance of 0.091", 0.001, variance)
    lesson.quote("1/√ε = 316", 1, 1e-5**-0.5)
    level = run.normalize(np.full(4, 3.0))
    lesson.check("equal features: σ = √ε", abs(level[2][0] - 1e-5**0.5), 1e-15)

    rng = np.random.default_rng(1)
    before, W = rng.standard_normal((7, 4)), rng.standard_normal((4, 5))
    _, cache = run.layer_norm(before @ W, gamma, beta, eps=0.0)
    dW = before.T @ run.layer_norm_backward(rng.standard_normal((7, 5)), cache)[0]
    lesson.check("Σ W ∘ dW = 0", abs((W * dW).sum()) / np.abs(W * dW).sum(), 1e-13)

    shrink = {C: 1 - ((C - 1) / C) ** 0.5 for C in (4, 512)}
    lesson.quote("13 % at C = 4, 0.1 % at C = 512", 100 * shrink[4], 4, 100 * shrink[512], 512)
    deviations = run.many - run.mean(run.many)
    sigma = np.sqrt((deviations**2).sum(-1, keepdims=True) / 6)  # C − 1 = 6
    x_hat, dx_hat = deviations / sigma, run.gamma_many * run.dy_many
    mixed = (dx_hat - run.mean(dx_hat) - x_hat * run.mean(dx_hat * x_hat)) / sigma
    lesson.check("C − 1 forward and C backward: still sums to 0", run.cosine(mixed, np.ones(7)).max(), 1e-13)
    lesson.check("C − 1 forward and C backward: not orthogonal to x̂", run.cosine(mixed, x_hat).max(), at_least=0.03)
    with np.errstate(invalid="ignore"):
        flat = [eps_outside(run, features) for features in (run.many, np.full((1, 7), 3.0))]
    lesson.check("ε outside the root: next to no difference on ordinary tokens", flat[0][0], 1e-3)
    lesson.check("ε outside the root: equal features give NaN", np.isnan(flat[1][1]).all(), at_least=1)
    lesson.check("γ outside the means, all γ = 1: no difference", gamma_outside(run, 1.0), 1e-15)
    lesson.claim(
        "LayerNorm's output has mean 0 and variance 1",
        "half right",
        f"before γ and β the mean is 0, and the variance 1 if it was far above ε; one of ±0.001 gets {variance:.3f}",
        said="tutorials and documentation",
    )
    first = [run.normalize(np.array([1.0, 0, 0, 0]))[0][0] * factor for factor in (1, 0.75**0.5)]
    lesson.claim(
        "dividing the variance by N or by N − 1 makes no difference",
        "half right",
        f"[1, 0, 0, 0] becomes {first[0]:.3f} or {first[1]:.3f} in its first entry: a constant factor of "
        f" {100 * shrink[4]:.0f} % at d_model = 4 and {100 * shrink[512]:.1f} % at 512, which γ can undo; "
        "but mixed in forward and backward it makes dx wrong",
        said="answers in forums",
    )


def gamma_outside(run, gamma):
    """The difference between γ inside and outside the means."""
    x_hat, _, sigma = run.normalize(run.many)
    right, _, _ = run.layer_norm_backward(run.dy_many, (x_hat, sigma, gamma))
    wrong = gamma * (run.dy_many - run.mean(run.dy_many) - x_hat * run.mean(run.dy_many * x_hat)) / sigma
    return np.abs(right - wrong).max()


def eps_outside(run, x, eps=1e-5):
    """The largest change of x̂ if ε is added after the root, and dx for a random dx̂."""
    deviations = x - run.mean(x)
    root = np.sqrt(run.mean(deviations**2))
    x_hat, dx_hat = deviations / (root + eps), run.dy_many[: len(x)]
    dx = (dx_hat - run.mean(dx_hat) - deviations / root * run.mean(dx_hat * x_hat)) / (root + eps)
    return np.abs(x_hat - run.normalize(x)[0]).max(), dx


def check_elsewhere(lesson, run):
    """The question that asks for the lesson's idea on something else."""
    rng = np.random.default_rng(4)
    x, dy = rng.standard_normal((2, 7, 4))

    def batch_norm(x):
        away = x - x.mean(axis=0)
        return away / np.sqrt((away**2).mean(axis=0))

    x_hat, sigma = batch_norm(x), x.std(axis=0)
    dx = (dy - dy.mean(axis=0) - x_hat * (dy * x_hat).mean(axis=0)) / sigma
    lesson.check("BatchNorm's dx", np.abs(dx - run.complex_step(lambda x: (dy * batch_norm(x)).sum(), x)).max(), 1e-13)
    lesson.check("... orthogonal to ones and to x̂", np.abs([dx.sum(axis=0), (dx * x_hat).sum(axis=0)]).max(), 1e-13)
