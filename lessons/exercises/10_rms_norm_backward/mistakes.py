"""The problems that 10_rms_norm_backward is tried on, its hints, and the mistakes that are known."""

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, orthogonal, sizes

SIZES = sizes("B T C", (2, 3, 5), (4, 2, 3), (1, 1, 2))


def make_rms_norm(rng, given, B, T, C):
    """The same without β."""
    inputs = {"x": rng.standard_normal((B, T, C)) + 0.5, "gamma": rng.standard_normal(C)}
    return backward_problem(given.rms_norm, inputs, ("x", "gamma"), rng, ratios={"(B T)": B * T})


RMS_NORM_MISTAKES = (
    Mistake(
        "the path through ρ is missing",
        "ρ depends on every feature of the token. What does each x̂_i do when ρ grows?",
        {" - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)": ""},
    ),
    Mistake(
        "a mean is subtracted, as in LayerNorm",
        "Look at the forward again: is there a mean of x in it that the gradient could go through?",
        {"(dx_hat - x_hat": "(dx_hat - dx_hat.mean(axis=-1, keepdims=True) - x_hat"},
    ),
    Mistake(
        "γ is multiplied in after the mean, not before it",
        "Which comes first on the way back from y: γ, or the mean? Is a mean of products the product with a mean?",
        {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("},
    ),
    Mistake(
        "the path through ρ has a sum where a mean should be",
        "ρ² is a mean of squares. If one of C squares grows by 1, by how much does ρ²?",
        {"mean": "sum"},
    ),
    Mistake(
        "only the direct path is divided by ρ",
        "x̂ = x/ρ: how does x̂ change with ρ, how ρ with x, and how many ρ stand below in the product of the two?",
        {"(dx_hat - x_hat": "(dx_hat / rho - x_hat", ")) / rho": "))"},
    ),
    Mistake(
        "dgamma is made with x",
        "What does γ multiply in the forward: the token as it came in, or what became of it?",
        {"(dy * x_hat)": "(dy * x_hat * rho)"},
    ),
)

EXERCISE = Exercise(
    name="10_rms_norm_backward",
    see='lesson 10, "Three paths" and "RMSNorm: one path less"',
    hints=(
        "What is in LayerNorm's forward and not in this one? Which of the three paths goes with it?",
        "Two paths are left, the direct one and the one through ρ. The second puts one number per token into dx, the "
        "same for all of its features up to a factor. What must dx be orthogonal to?",
        "dx̂ = dy ∘ γ;  dx (C) = (dx̂ − x̂ ∘ a mean) / ρ, the mean of shape (B, T, 1);  dgamma (C) = a sum of (B, T, C) "
        "over B and T",
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
                    "each row of dx is orthogonal to x̂, except for eps: a token of another length comes out the same",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=RMS_NORM_MISTAKES,
        ),
    ),
)
