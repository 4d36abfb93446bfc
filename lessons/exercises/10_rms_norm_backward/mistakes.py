"""The problems, the hints and the known mistakes of 10_rms_norm_backward."""

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, orthogonal, sizes

SIZES = sizes("B T C", (2, 3, 5), (4, 2, 3), (1, 1, 2))


def make_rms_norm(rng, given, B, T, C):
    """Tokens with a mean, and a γ of order one."""
    inputs = {"x": rng.standard_normal((B, T, C)) + 0.5, "gamma": rng.standard_normal(C)}
    return backward_problem(given.rms_norm, inputs, ("x", "gamma"), rng, ratios={"B T": B * T})


RMS_NORM_MISTAKES = (
    Mistake(
        "the path through rms is missing",
        "rms depends on every feature of the token. What happens to each x̂_i when rms grows?",
        {" - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)": ""},
    ),
    Mistake(
        "a mean is subtracted, as in LayerNorm",
        "Look at the forward again. Is there a mean of x in it that the gradient could go through?",
        {"(dx_hat - x_hat": "(dx_hat - dx_hat.mean(axis=-1, keepdims=True) - x_hat"},
    ),
    Mistake(
        "γ is applied after the mean, not before it",
        "On the way back from y, what comes first: γ, or the mean? Can you pull γ out of a mean over the features?",
        {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("},
    ),
    Mistake(
        "the path through rms has a sum where a mean should be",
        "rms² is a mean of C squares. If one square grows by 1, how much does rms² grow?",
        {"mean": "sum"},
    ),
    Mistake(
        "only the direct path is divided by rms",
        "x̂ = x / rms. How does x̂ change with rms, and how does rms change with x? Is there a division by rms "
        "left in the product?",
        {"(dx_hat - x_hat": "(dx_hat / rms - x_hat", ")) / rms": "))"},
    ),
    Mistake(
        "dgamma is made with x",
        "What does γ multiply in the forward: x, or x̂?",
        {"(dy * x_hat)": "(dy * x_hat * rms)"},
    ),
)

EXERCISE = Exercise(
    name="10_rms_norm_backward",
    hints=(
        "What does LayerNorm's forward have that this one lacks? Which of the three paths goes with it?",
        "Two paths are left: directly, and through rms. The second adds to dx one number per token, times x̂. What "
        "must dx be orthogonal to?",
        "dx̂ = dy ∘ γ;  dx (B, T, C) = (dx̂ − x̂ ∘ a mean) / rms, the mean (B, T, 1);  dgamma (C,) = a sum of (B, "
        "T, C) over B and T",
    ),
    tasks=(
        Task(
            function="rms_norm_backward",
            forward="rms_norm",
            outputs=(Output("dx", "BTC"), Output("dgamma", "C")),
            make=make_rms_norm,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dx is orthogonal to x̂, except for eps: stretching a token changes nothing",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=RMS_NORM_MISTAKES,
        ),
    ),
)
