"""The problems, the hints and the known mistakes of 10_rms_norm_backward."""

from exercise_problems import backward_problem, orthogonal, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("B T C", (2, 3, 5), (4, 2, 3), (1, 1, 2))


def make_rms_norm(rng, given, B, T, C):
    """Tokens with a mean, and a γ of order one."""
    inputs = {"x": rng.standard_normal((B, T, C)) + 0.5, "gamma": rng.standard_normal(C)}
    return backward_problem(given.rms_norm, inputs, ("x", "gamma"), rng, ratios={"B T": B * T})


RMS_NORM_MISTAKES = (
    Mistake("path-through-rms-missing", {" - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)": ""}),
    Mistake("mean-subtracted-layernorm", {"(dx_hat - x_hat": "(dx_hat - dx_hat.mean(axis=-1, keepdims=True) - x_hat"}),
    Mistake("gamma-applied-after-mean", {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("}),
    Mistake("path-through-rms-sum-where", {"mean": "sum"}),
    Mistake("only-direct-path-divided-rms", {"(dx_hat - x_hat": "(dx_hat / rms - x_hat", ")) / rms": "))"}),
    Mistake("dgamma-made-x", {"(dy * x_hat)": "(dy * x_hat * rms)"}),
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
